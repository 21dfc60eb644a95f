"""Accuracy against T with and without BN in one panel: the paper's look at ISIC, for every condition."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from tstar.errors import TstarError
from tstar.report.records import Records, Sweep
from tstar.report.style import (
    BLUE,
    ORANGE,
    VERMILION,
    error_bars,
    finish,
    panels,
    styled,
    temperature_axis,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Line(NamedTuple):
    """Mean accuracy at each T, and its standard error over seeds (NaN with one seed)."""

    temperatures: tuple[float, ...]
    mean: tuple[float, ...]
    error: tuple[float, ...]


class NormPanel(NamedTuple):
    title: str
    plain: Line
    bn: Line
    recommended: float | None


class NormSweep(NamedTuple):
    panels: tuple[NormPanel, ...]
    metric: str


def norm_sweep_data(records: Records) -> NormSweep:
    """One panel per condition that was swept both ways, at two temperatures at least."""
    pairs = [pair for pair in records.pairs() if all(len(s.temperatures) > 1 for s in pair)]
    if not pairs:
        raise TstarError(
            "No condition has runs with and without BN at two or more temperatures; add the missing norm "
            "to the study."
        )
    return NormSweep(
        tuple(
            NormPanel(
                f"{bn.title}\nM = {bn.facts.get('num_features')}",
                line(plain),
                line(bn),
                bn.recommended,
            )
            for plain, bn in pairs
        ),
        records.metric,
    )


def line(sweep: Sweep) -> Line:
    indices = range(len(sweep.temperatures))
    errors = [sweep.standard_error(i) for i in indices]
    return Line(
        sweep.temperatures,
        tuple(sweep.mean(i) for i in indices),
        tuple(math.nan if e is None else e for e in errors),
    )


@styled
def draw_norm_sweep(data: NormSweep) -> Figure:
    figure, every = panels(len(data.panels), columns=3, width=2.7, height=2.15)
    for axes, panel in zip(every, data.panels, strict=True):
        temperature_axis(axes, sorted({*panel.plain.temperatures, *panel.bn.temperatures}))
        for found, color, style, marker in (
            (panel.plain, ORANGE, "--", "s"),
            (panel.bn, BLUE, "-", "o"),
        ):
            mean, error = ([100 * value for value in part] for part in (found.mean, found.error))
            look = {"color": color, "ls": style, "marker": marker}
            error_bars(axes, found.temperatures, mean, error, **look)
        if panel.recommended is not None:
            axes.axvline(panel.recommended, color=VERMILION, ls=":", lw=1.5)
        axes.grid(axis="y")
    finish(
        figure,
        every,
        [panel.title for panel in data.panels],
        ("temperature T", f"{data.metric} accuracy [%]"),
        [
            {"color": BLUE, "marker": "o", "ms": 4, "label": "with BN"},
            {"color": ORANGE, "ls": "--", "marker": "s", "ms": 4, "label": "without BN"},
            {"color": VERMILION, "ls": ":", "label": "the law's T"},
        ],
    )
    return figure
