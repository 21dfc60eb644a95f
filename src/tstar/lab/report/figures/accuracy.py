"""Accuracy against T, without BN and with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tstar.errors import TstarError
from tstar.lab.report import style
from tstar.lab.report.records import Records, say
from tstar.lab.report.style import BLUE, INK, ORANGE, VERMILION, drawn_panels, finish, styled, tick

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOKS: dict[str, dict[str, Any]] = {
    "none": {"color": ORANGE, "ls": "--", "marker": "s"},
    "batch": {"color": BLUE, "ls": "-", "marker": "o"},
}
_NAMES = {"none": "mean, without BN", "batch": "mean, with BN"}


def accuracy_data(records: Records) -> pd.DataFrame:
    """One row per condition, norm and T: mean, median, quartiles, extremes, and the T judged."""
    rows: list[dict[str, Any]] = []
    for sweep in (*records.with_norm("none"), *records.with_norm("batch")):
        width = say("num_features", sweep.facts.get("num_features"))
        norm = sweep.facts.get("norm", "batch")
        # The formula presupposes BN.
        judged = sweep.law if norm == "batch" and sweep.law is not None else np.nan
        for T in sweep.temperatures:
            values = 100 * sweep.seen(T)
            row = {"panel": f"{sweep.title}\n{width}", "norm": norm, "temperature": T}
            row |= {"mean": values.mean(), "seeds": len(values), "judged": judged}
            quantiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
            names = ("low", "q1", "median", "q3", "high")
            rows.append(row | dict(zip(names, quantiles, strict=True)))
    if not rows:
        raise TstarError(
            "No condition has at least two temperatures; "
            'sweep a grid of temperatures with method = "fixed".'
        )
    frame = pd.DataFrame(rows)
    frame.attrs |= {"metric": records.metric, "judged": records.label}
    return frame


def accuracy_legend(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The lines that a frame has, each with its look."""
    lines = [_LOOKS[n] | {"ms": 4, "label": _NAMES[n]} for n in _LOOKS if n in {*frame["norm"]}]
    lines.append({"color": INK, "marker": "_", "ls": "", "label": "median"})
    if frame["judged"].notna().any():
        lines.append({"color": VERMILION, "ls": ":", "label": frame.attrs["judged"]})
    return lines


@styled
def draw_accuracy(frame: pd.DataFrame, legend: bool = True) -> Figure:
    figure, every, names, parts = drawn_panels(frame, columns=3, width=2.7, height=2.15)
    for axes, here in zip(every, parts, strict=True):
        grid = sorted(set(here["temperature"]))
        shown = grid[:: -(-len(grid) // 6)]  # more ticks would collide
        style.powers_of_two(axes, shown, [tick(T) for T in shown])
        for norm, look in _LOOKS.items():
            mine = here[here["norm"] == norm]
            T = mine["temperature"] * (1.04 if norm == "batch" else 0.96)  # side by side
            axes.vlines(T, mine["low"], mine["high"], color=look["color"], lw=0.8)
            axes.vlines(T, mine["q1"], mine["q3"], color=look["color"], lw=5, alpha=0.45)
            axes.plot(T, mine["median"], "_", color=INK, ms=6)
            axes.plot(mine["temperature"], mine["mean"], ms=3, lw=1.2, **look)
        for judged in here["judged"].dropna().unique():
            axes.axvline(judged, color=VERMILION, ls=":", lw=1.5)
    names_of_axes = ("temperature T", f"{frame.attrs['metric']} accuracy [%]")
    finish(figure, every, names, names_of_axes, accuracy_legend(frame) if legend else ())
    return figure
