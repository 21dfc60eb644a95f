"""Accuracy against T, without BN and with it; and what BN changes, against M."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tstar.errors import TstarError
from tstar.lab.report import style
from tstar.lab.report.records import Records, said
from tstar.lab.report.style import BLUE, INK, ORANGE, VERMILION, drawn_panels, finish, styled, tick

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOKS: dict[str, dict[str, Any]] = {
    "none": {"color": ORANGE, "ls": "--", "marker": "s"},
    "batch": {"color": BLUE, "ls": "-", "marker": "o"},
}
LEGEND = (
    {**_LOOKS["none"], "ms": 4, "label": "mean, without BN"},
    {**_LOOKS["batch"], "ms": 4, "label": "mean, with BN"},
    {"color": INK, "marker": "_", "ls": "", "label": "median"},
    {"color": VERMILION, "ls": ":", "label": "the law's T"},
)


def accuracy_data(records: Records) -> pd.DataFrame:
    """One row per condition, norm and T: mean, median, quartiles, extremes, and the law's T."""
    rows: list[dict[str, Any]] = []
    for sweep in (*records.with_norm("none"), *records.with_norm("batch")):
        width = said("num_features", sweep.facts.get("num_features"))
        norm = sweep.facts.get("norm", "batch")
        # The law presupposes BN.
        law = sweep.law if norm == "batch" and sweep.law is not None else np.nan
        for T in sweep.temperatures:
            values = 100 * sweep.seen(T)
            row = {"panel": f"{sweep.title}\n{width}", "norm": norm, "temperature": T}
            row |= {"mean": values.mean(), "seeds": len(values), "law": law}
            quantiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
            names = ("low", "q1", "median", "q3", "high")
            rows.append(row | dict(zip(names, quantiles, strict=True)))
    if not rows:
        raise TstarError(
            "No condition has at least two temperatures; "
            'sweep a grid of temperatures with method = "fixed".'
        )
    frame = pd.DataFrame(rows)
    frame.attrs["metric"] = records.metric
    return frame


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
        for law in here["law"].dropna().unique():
            axes.axvline(law, color=VERMILION, ls=":", lw=1.5)
    names_of_axes = ("temperature T", f"{frame.attrs['metric']} accuracy [%]")
    finish(figure, every, names, names_of_axes, LEGEND if legend else ())
    return figure


_AT = {"T = 1": _LOOKS["batch"], "best T": _LOOKS["none"]}
AT_LEGEND = tuple(look | {"ms": 4, "label": name} for name, look in _AT.items())


def bn_difference_data(records: Records) -> pd.DataFrame:
    """Accuracy with BN − without, in points, and its standard error, for each M, at two T.

    "best T" takes the best T without BN and the best T with BN, each on its own.
    """
    rows = []
    for plain, bn in records.pairs():
        ends = {"T = 1": (1.0, 1.0), "best T": (plain.ranking[0], bn.ranking[0])}
        for at, (first, second) in ends.items():
            # Over the seeds of both; the others are NaN, and left out.
            base = pd.Series(plain.curve.by_seed(first, plain.metric), dtype=float)
            gain = 100 * (pd.Series(bn.curve.by_seed(second, bn.metric), dtype=float) - base)
            row = {"panel": bn.title, "num_features": bn.facts.get("num_features"), "at": at}
            rows.append(row | {"value": gain.mean(), "error": gain.sem()})
    if not rows:
        raise TstarError(
            'No condition was run with norm = "none" and with norm = "batch"; add the missing norm '
            "to the study."
        )
    frame = pd.DataFrame(rows).sort_values(["panel", "num_features"])
    frame.attrs["metric"] = records.metric
    return frame


@styled
def draw_bn_difference(frame: pd.DataFrame, legend: bool = True) -> Figure:
    figure, every, names, parts = drawn_panels(frame, width=2.3, height=2.0)
    for axes, here in zip(every, parts, strict=True):
        axes.axhline(0, color=INK, lw=0.8)
        for at, look in _AT.items():
            mine = here[here["at"] == at]
            error = mine["error"].fillna(0)
            axes.errorbar(mine["num_features"], mine["value"], error, ms=4, capsize=2, **look)
        widths = sorted(set(here["num_features"].dropna()))
        style.powers_of_two(axes, widths, [f"{M:g}" for M in widths])
    names_of_axes = ("features M", f"Δ {frame.attrs['metric']} accuracy [points]")
    finish(figure, every, names, names_of_axes, AT_LEGEND if legend else (), 30)
    return figure
