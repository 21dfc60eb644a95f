"""The law's T against the best T, one point per condition, with the accuracy that it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tstar.errors import TstarError
from tstar.report.records import Records, Sweep
from tstar.report.style import FAINT, INK, MARKERS, color_bar, literal, new_figure, short, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = 3  # temperatures of a curve, as for a fit


class Point(NamedTuple):
    """One condition.

    ``regret`` is accuracy at the best grid T − interpolated accuracy at the law's T, in points.
    ``low`` to ``high`` are the temperatures around the best one that are within one standard error of it.
    """

    dataset: str
    domain: str
    label: str
    recommended: float
    best: float
    low: float
    high: float
    regret: float


class Recommended(NamedTuple):
    points: tuple[Point, ...]
    metric: str
    chosen_on: str

    @property
    def mean_regret(self) -> float:
        return float(np.mean([point.regret for point in self.points]))


def recommended_data(records: Records) -> Recommended:
    """A point for each condition with BN that has three temperatures and a recommended T."""
    points = [
        _point(sweep)
        for sweep in records.with_norm("batch", LEAST)
        if sweep.recommended is not None
    ]
    if not points:
        raise TstarError(
            f'No condition has BN, at least {LEAST} temperatures and a known M; add norm = "batch" and '
            "temperatures to the study."
        )
    return Recommended(tuple(points), records.metric, records.chosen_on)


def _point(sweep: Sweep) -> Point:
    assert sweep.recommended is not None
    low, high = plateau(sweep)
    return Point(
        str(sweep.facts.get("dataset")),
        str(sweep.facts.get("domain") or "unknown"),
        f"{sweep.title}, M = {sweep.facts.get('num_features')}",
        sweep.recommended,
        sweep.temperatures[sweep.best],
        low,
        high,
        sweep.judged(sweep.recommended).regret,
    )


def plateau(sweep: Sweep) -> tuple[float, float]:
    """The unbroken stretch of grid temperatures around the best whose mean is within its standard error."""
    best = sweep.best
    least = sweep.mean(best) - (sweep.standard_error(best) or 0.0)
    low = high = best
    while low > 0 and sweep.mean(low - 1) >= least:
        low -= 1
    while high + 1 < len(sweep.temperatures) and sweep.mean(high + 1) >= least:
        high += 1
    return sweep.temperatures[low], sweep.temperatures[high]


def marked(points: Sequence[Point]) -> dict[str, list[Point]]:
    """The points that share a marker: a data set's, or a domain's where data sets outnumber the markers."""
    by: dict[str, dict[str, list[Point]]] = {"dataset": {}, "domain": {}}
    for point in points:
        for what, groups in by.items():
            groups.setdefault(getattr(point, what), []).append(point)
    return by["dataset"] if len(by["dataset"]) <= len(MARKERS) else by["domain"]


@styled
def draw_recommended(data: Recommended) -> Figure:
    from matplotlib.lines import Line2D

    figure = new_figure(4.2, 4.3)
    axes = figure.add_subplot()
    points = data.points
    values = [T for p in points for T in (p.recommended, p.low, p.high)]
    low, high = 0.8 * min(values), 1.25 * max(values)
    axes.plot([low, high], [low, high], color=INK, lw=0.9)
    axes.fill_between(
        [low, high], [low / 2, high / 2], [2 * low, 2 * high], color=FAINT, alpha=0.35, lw=0
    )
    axes.vlines(
        [p.recommended for p in points],
        [p.low for p in points],
        [p.high for p in points],
        color=INK,
        lw=0.7,
        alpha=0.6,
    )
    top = max(1e-9, max(p.regret for p in points))
    names = marked(points)
    drawn = None
    for marker, here in zip(MARKERS, names.values(), strict=False):
        drawn = axes.scatter(
            [p.recommended for p in here],
            [p.best for p in here],
            c=[p.regret for p in here],
            s=[28 + 90 * max(p.regret, 0) / top for p in here],
            cmap="viridis_r",
            vmin=min(0.0, *(p.regret for p in points), 0.0),
            vmax=top,
            marker=marker,
            edgecolors=INK,
            linewidths=0.7,
            zorder=3,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for which in (axes.xaxis, axes.yaxis):
        which.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.set_xlabel("the law's T")
    axes.set_ylabel(f"best T of the grid (by {data.chosen_on} accuracy)")
    axes.grid()
    axes.set_axisbelow(True)
    assert drawn is not None
    color_bar(figure, drawn, axes, "regret [points]")
    if len(names) > 1:
        handles = [
            Line2D(
                [], [], ls="", mfc="none", mec=INK, marker=marker, label=literal(short(name, 22))
            )
            for name, marker in zip(names, MARKERS, strict=False)
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(names), 3))
    axes.set_title(f"{len(points)} conditions, mean regret {data.mean_regret:.2f} points")
    return figure
