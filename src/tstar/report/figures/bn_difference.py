"""What inserting BatchNorm changes, at T = 1 and at the best T, against M."""

from __future__ import annotations

import math
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NamedTuple

from tstar.errors import TstarError
from tstar.report.records import Records, Sweep, without
from tstar.report.style import BLUE, INK, ORANGE, error_bars, finish, panels, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Difference(NamedTuple):
    """Accuracy with BN − without, in points, and the standard error of it; NaN where it is not known."""

    value: float
    error: float


class DifferencePanel(NamedTuple):
    """One environment: a difference at T = 1 and one at each side's own best T, for every M."""

    title: str
    num_features: tuple[int, ...]
    at_one: tuple[Difference, ...]
    at_best: tuple[Difference, ...]


class BNDifference(NamedTuple):
    panels: tuple[DifferencePanel, ...]
    metric: str


def bn_difference_data(records: Records) -> BNDifference:
    """One panel per data set, model and setting that was swept without and with BN.

    "At the best T" takes the best T without BN and the best T with BN, each on its own.
    """
    pairs = records.pairs()
    if not pairs:
        raise TstarError(
            'No condition was run with norm = "none" and with norm = "batch"; add the missing norm to the '
            "study."
        )
    groups: dict[tuple[object, ...], list[tuple[Sweep, Sweep]]] = {}
    for pair in pairs:
        groups.setdefault(without(pair[1], "num_features", "norm"), []).append(pair)
    return BNDifference(
        tuple(
            sorted(
                (_panel(group) for group in groups.values()),
                key=lambda panel: panel.title,
            )
        ),
        records.metric,
    )


def _panel(group: list[tuple[Sweep, Sweep]]) -> DifferencePanel:
    group = sorted(group, key=lambda pair: float(pair[1].facts["num_features"]))
    return DifferencePanel(
        group[0][1].title,
        tuple(int(bn.facts["num_features"]) for _, bn in group),
        tuple(difference(plain, plain.index_of(1), bn, bn.index_of(1)) for plain, bn in group),
        tuple(difference(plain, plain.best, bn, bn.best) for plain, bn in group),
    )


def difference(plain: Sweep, i: int | None, bn: Sweep, j: int | None) -> Difference:
    """100·(with BN − without) over the seeds that both have, and its standard error; NaN where there are none."""
    if i is None or j is None:
        return Difference(math.nan, math.nan)
    first = plain.curve.by_seed(plain.temperatures[i], plain.metric)
    second = bn.curve.by_seed(bn.temperatures[j], bn.metric)
    both = [100 * (second[s] - first[s]) for s in sorted(first.keys() & second.keys())]
    if not both:
        return Difference(math.nan, math.nan)
    error = stdev(both) / math.sqrt(len(both)) if len(both) > 1 else math.nan
    return Difference(fmean(both), error)


@styled
def draw_bn_difference(data: BNDifference) -> Figure:
    figure, every = panels(len(data.panels), width=2.3, height=2.0)
    lines = (("at_one", "T = 1", BLUE, "-", "o"), ("at_best", "best T", ORANGE, "--", "s"))
    for axes, panel in zip(every, data.panels, strict=True):
        axes.axhline(0, color=INK, lw=0.8)
        for name, _, color, style, marker in lines:
            found = getattr(panel, name)
            value, error = zip(*found, strict=True)
            look = {"color": color, "ls": style, "marker": marker}
            error_bars(axes, panel.num_features, value, error, **look)
        axes.set_xscale("log", base=2)
        axes.set_xticks(panel.num_features, [str(M) for M in panel.num_features])
        axes.minorticks_off()
        axes.grid(axis="y")
    finish(
        figure,
        every,
        [panel.title for panel in data.panels],
        ("features M", f"Δ {data.metric} accuracy [points]"),
        [
            {"color": color, "ls": style, "marker": marker, "ms": 4, "label": label}
            for _, label, color, style, marker in lines
        ],
        30,
    )
    return figure
