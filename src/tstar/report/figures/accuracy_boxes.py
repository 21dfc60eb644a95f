"""Accuracy against T: a box for the seeds at each T, and the interpolation that a fit uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tstar.errors import TstarError
from tstar.report.figures.boxes import Box, box_of
from tstar.report.records import Records, Sweep
from tstar.report.style import (
    BLUE,
    INK,
    SKY,
    VERMILION,
    finish,
    panels,
    styled,
    temperature_axis,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class BoxPanel(NamedTuple):
    """One condition. Between the means accuracy is linear in ln T, the axis of the figure."""

    title: str
    temperatures: tuple[float, ...]
    boxes: tuple[Box, ...]
    recommended: float | None


class AccuracyBoxes(NamedTuple):
    panels: tuple[BoxPanel, ...]
    metric: str


def accuracy_boxes_data(records: Records) -> AccuracyBoxes:
    """One panel per condition with BN; those without it where there are none with it."""
    sweeps = records.with_norm("batch") or records.with_norm("none")
    if not sweeps:
        raise TstarError(
            "No condition has at least two temperatures; "
            'sweep a grid of temperatures with method = "fixed".'
        )
    return AccuracyBoxes(tuple(_panel(sweep) for sweep in sweeps), records.metric)


def _panel(sweep: Sweep) -> BoxPanel:
    bn = ", BN" if sweep.facts.get("norm") == "batch" else ", no BN"
    return BoxPanel(
        f"{sweep.title}\nM = {sweep.facts.get('num_features')}{bn}",
        sweep.temperatures,
        tuple(box_of(sweep.seen(i)) for i in range(len(sweep.temperatures))),
        sweep.recommended,
    )


@styled
def draw_accuracy_boxes(data: AccuracyBoxes) -> Figure:
    figure, every = panels(len(data.panels), columns=3, width=2.7, height=2.15)
    for axes, panel in zip(every, data.panels, strict=True):
        temperature_axis(axes, panel.temperatures)
        # Two collections per panel: a box of its own for every T takes most of the drawing.
        T, boxes = panel.temperatures, panel.boxes
        for low, high, wide, color in (
            ([b.low for b in boxes], [b.high for b in boxes], 0.8, INK),
            ([b.q1 for b in boxes], [b.q3 for b in boxes], 7.0, SKY),
        ):
            axes.vlines(T, [100 * y for y in low], [100 * y for y in high], color=color, lw=wide)
        means = [100 * b.mean for b in panel.boxes]
        axes.plot(panel.temperatures, means, "x-", color=BLUE, lw=1.2, ms=5, mew=1.2)
        axes.plot(panel.temperatures, [100 * b.median for b in panel.boxes], "^", color=INK, ms=3.5)
        if panel.recommended is not None:
            axes.axvline(panel.recommended, color=VERMILION, ls="--", lw=1.2)
        axes.grid(axis="y")
    finish(
        figure,
        every,
        [panel.title for panel in data.panels],
        ("temperature T", f"{data.metric} accuracy [%]"),
        [
            {"color": BLUE, "marker": "x", "label": "mean, interpolated"},
            {"color": INK, "marker": "^", "ls": "", "label": "median"},
            {"color": VERMILION, "ls": "--", "label": "the law's T"},
        ],
    )
    return figure
