"""The formula's T against the best T, one point per condition, with the accuracy it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from tstar.lab.report import style
from tstar.lab.report.records import Records, say, text
from tstar.lab.report.style import FAINT, INK, MARKERS, color_bar, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def recommended_data(records: Records) -> pd.DataFrame:
    """A point for each condition with BN that has three temperatures and a T to judge.

    ``regret`` is accuracy at the best grid T − interpolated accuracy at the T judged, in points.
    """
    sweeps = records.judged()
    frame = pd.DataFrame(
        {
            "panel": "",
            "dataset": text(sweep.facts.get("dataset")),
            "domain": text(sweep.facts.get("domain")) or "unknown",
            "label": f"{sweep.title}, {say('num_features', sweep.facts['num_features'])}",
            **{"judged": sweep.law, "best": sweep.ranking[0]},
            "regret": sweep.judged(sweep.law or 1.0).regret,
        }
        for sweep in sweeps
    )
    frame.attrs |= {"chosen_on": records.chosen_on, "judged": records.label}
    return frame


@styled
def draw_recommended(frame: pd.DataFrame, legend: bool = True) -> Figure:
    figure = new_figure(4.2, 4.3)
    axes = figure.add_subplot()
    values = frame[["judged", "best"]].to_numpy()
    low, high = 0.8 * values.min(), 1.25 * values.max()
    axes.plot([low, high], [low, high], color=INK, lw=0.9)
    band: Any = {"color": FAINT, "alpha": 0.35, "lw": 0}
    axes.fill_between([low, high], [low / 2, high / 2], [2 * low, 2 * high], **band)
    top = max(1e-9, frame["regret"].max())
    # A marker for each data set, or for each domain if data sets outnumber the markers.
    by = "dataset" if frame["dataset"].nunique() <= len(MARKERS) else "domain"
    names = [*dict.fromkeys(frame[by])]
    drawn: Any = None
    for marker, name in zip(MARKERS, names, strict=False):
        here = frame[frame[by] == name]
        look: Any = {"marker": marker, "edgecolors": INK, "linewidths": 0.7, "zorder": 3}
        look |= {"c": here["regret"], "s": 28 + 90 * here["regret"].clip(lower=0) / top}
        look |= {"cmap": "viridis_r", "vmin": min(0.0, frame["regret"].min()), "vmax": top}
        label = style.literal(style.short(name, 22))
        drawn = axes.scatter(here["judged"], here["best"], label=label, **look)
    best = f"best T of the grid (by {frame.attrs['chosen_on']} accuracy)"
    axes.set(xlim=(low, high), ylim=(low, high), xlabel=frame.attrs["judged"], ylabel=best)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.grid()
    axes.set_axisbelow(True)
    color_bar(figure, drawn, axes, "regret [points]")
    if len(names) > 1:
        figure.legend(loc="outside lower center", ncols=min(len(names), 3))
    mean = frame["regret"].mean()
    axes.set_title(f"{len(frame)} conditions, mean regret {mean:.2f} points")
    return figure
