"""Accuracy against T, without BN and with it; and the formula's T against the best one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tstar.errors import TstarError
from tstar.lab.report import style
from tstar.lab.report.records import Records, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOOKS: dict[str, dict[str, Any]] = {
    "none": {"color": style.ORANGE, "ls": "--", "marker": "s", "label": "mean, without BN"},
    "batch": {"color": style.BLUE, "ls": "-", "marker": "o", "label": "mean, with BN"},
}
_MEDIAN = {"color": style.INK, "ls": "", "marker": "_", "label": "median"}


def accuracy_data(records: Records) -> pd.DataFrame:
    """One row per condition, norm and T: mean, median, quartiles, extremes, and the T judged."""
    rows: list[dict[str, Any]] = []
    for sweep in (*records.with_norm("none"), *records.with_norm("batch")):
        width = say("num_features", sweep.facts.get("num_features"))
        norm = sweep.curve.norm
        # The formula presupposes BN.
        judged = sweep.law if norm == "batch" and sweep.law is not None else np.nan
        for T in sweep.temperatures:
            values = 100 * sweep.seen(T)
            row = {"panel": f"{sweep.title}\n{width}", "norm": norm, "temperature": T}
            row |= {"mean": values.mean(), "seeds": len(values), "judged": judged}
            rows.append(row | style.quantiles(values))
    if not rows:
        raise TstarError(
            "No condition has at least two temperatures; "
            'sweep a grid of temperatures with method = "fixed".'
        )
    frame = pd.DataFrame(rows)
    frame.attrs |= {"metric": records.metric, "judged": records.label}
    return frame


def draw_accuracy(frame: pd.DataFrame) -> Figure:
    """One panel per condition, and the lines that the frame has in the legend."""
    legend = [look | {"ms": 4} for norm, look in _LOOKS.items() if norm in {*frame["norm"]}]
    legend.append(_MEDIAN)
    if frame["judged"].notna().any():
        legend.append({"color": style.VERMILION, "ls": ":", "label": frame.attrs["judged"]})
    labels = ("temperature T", f"{frame.attrs['metric']} accuracy [%]")
    size: Any = {"columns": 3, "width": 2.7, "height": 2.15}
    return style.draw_panels(frame, _draw_condition, labels, legend=legend, **size)


def _draw_condition(axes: Axes, rows: pd.DataFrame) -> None:
    grid = sorted(set(rows["temperature"]))
    shown = grid[:: -(-len(grid) // 6)]  # more ticks would collide
    style.powers_of_two(axes, shown, [style.tick(T) for T in shown])
    for norm, look in _LOOKS.items():
        mine = rows[rows["norm"] == norm]
        T = mine["temperature"] * (1.04 if norm == "batch" else 0.96)  # side by side
        axes.vlines(T, mine["low"], mine["high"], color=look["color"], lw=0.8)
        axes.vlines(T, mine["q1"], mine["q3"], color=look["color"], lw=5, alpha=0.45)
        axes.plot(T, mine["median"], "_", color=style.INK, ms=6)
        axes.plot(mine["temperature"], mine["mean"], ms=3, lw=1.2, **look)
    for judged in rows["judged"].dropna().unique():
        axes.axvline(judged, color=style.VERMILION, ls=":", lw=1.5)


def recommended_data(records: Records) -> pd.DataFrame:
    """A point for each condition with BN that has three temperatures and a T to judge.

    ``regret`` is accuracy at the best grid T − interpolated accuracy at the T judged, in points.
    """
    frame = pd.DataFrame(
        {
            "panel": "",
            "condition": sweep.title,
            "num_features": sweep.facts.get("num_features"),
            **{"judged": sweep.law, "best": sweep.best},
            "regret": sweep.curve.regret(sweep.law or 1.0, records.metric),
        }
        for sweep in records.judged()
    )
    frame.attrs |= {"chosen_on": records.chosen_on, "judged": records.label}
    return frame


def draw_recommended(frame: pd.DataFrame) -> Figure:
    figure = style.new_figure(4.2, 4.3)
    axes = figure.add_subplot()
    values = frame[["judged", "best"]].to_numpy()
    low, high = 0.8 * values.min(), 1.25 * values.max()
    axes.plot([low, high], [low, high], color=style.INK, lw=0.9)
    band: Any = {"color": style.FAINT, "alpha": 0.35, "lw": 0}
    axes.fill_between([low, high], [low / 2, high / 2], [2 * low, 2 * high], **band)
    look: Any = {"c": frame["regret"], "cmap": "viridis_r", "vmin": min(0.0, frame["regret"].min())}
    look |= {"s": 40, "edgecolors": style.INK, "linewidths": 0.7, "zorder": 3}
    points = axes.scatter(frame["judged"], frame["best"], **look)
    best = f"best T of the grid (by {frame.attrs['chosen_on']} accuracy)"
    axes.set(xlim=(low, high), ylim=(low, high), xlabel=frame.attrs["judged"], ylabel=best)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.grid()
    figure.colorbar(points, label="regret [points]", location="top", shrink=0.5, aspect=30)
    mean = frame["regret"].mean()
    axes.set_title(f"{len(frame)} conditions, mean regret {mean:.2f} points")
    return figure
