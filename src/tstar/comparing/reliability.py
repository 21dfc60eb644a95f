"""Reliability diagrams of a comparison: how often each method is right where it says how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tstar.comparing.statistics import Run
from tstar.errors import TstarError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tstar.methods.calibration import Reliability


class ReliabilityPanel(NamedTuple):
    """A method's diagram over all its finished seeds together, and the mean of their ECE."""

    method: str
    diagram: Reliability
    ece: float
    n: int


def reliability_data(runs: Sequence[Run]) -> tuple[ReliabilityPanel, ...]:
    """One panel per method, in the order in which they ran; methods without a finished run are left out."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        if run.status == "done" and run.reliability is not None:
            found.setdefault(run.method, []).append(run)
    return tuple(
        ReliabilityPanel(
            method,
            pooled([run.reliability for run in group if run.reliability is not None]),
            sum(run.ece or 0.0 for run in group) / len(group),
            len(group),
        )
        for method, group in found.items()
    )


def pooled(diagrams: Sequence[Reliability]) -> Reliability:
    """The diagram of all samples together: counts are added, means weighted with them."""
    from tstar.methods.calibration import Reliability

    if not diagrams or len({diagram.edges for diagram in diagrams}) > 1:
        raise TstarError(
            "Only diagrams with the same bins can be pooled, and at least one is needed."
        )
    counts = [sum(bins) for bins in zip(*(d.count for d in diagrams), strict=True)]

    def mean(name: str) -> tuple[float, ...]:
        # An empty bin's mean is NaN; its weight is 0.
        sums = [
            sum(n * value for n, value in pairs if n)
            for pairs in zip(
                *(zip(d.count, getattr(d, name), strict=True) for d in diagrams), strict=True
            )
        ]
        return tuple(s / n if n else math.nan for s, n in zip(sums, counts, strict=True))

    return Reliability(diagrams[0].edges, mean("confidence"), mean("accuracy"), tuple(counts))


def reliability_records(runs: Sequence[Run]) -> list[dict[str, object]]:
    """One record for each run and bin of confidence that holds samples."""
    return [
        {
            "method": run.method,
            "seed": run.seed,
            "low": low,
            "high": high,
            "confidence": confidence,
            "accuracy": accuracy,
            "count": count,
        }
        for run in runs
        if run.reliability is not None
        for low, high, confidence, accuracy, count in zip(
            run.reliability.edges,
            run.reliability.edges[1:],
            run.reliability.confidence,
            run.reliability.accuracy,
            run.reliability.count,
            strict=False,  # one edge more than bins
        )
        if count
    ]


def draw_reliability(data: Sequence[ReliabilityPanel]) -> Figure:
    """One panel per method: see :func:`tstar.methods.calibration.draw_panel`."""
    from tstar.methods.calibration import draw_panel
    from tstar.report.style import literal, panels, short, styled

    if not data:
        raise TstarError("A reliability diagram needs at least one finished run.")

    def draw(data: Sequence[ReliabilityPanel]) -> Figure:
        figure, every = panels(len(data), columns=4, width=2.1, height=2.15)
        for axes, panel in zip(every, data, strict=True):
            title = f"{short(panel.method, 26)}\nECE {panel.ece:.3f}"
            draw_panel(axes, panel.diagram, literal(title))
        figure.supxlabel("confidence (largest probability)", fontsize=9)
        figure.supylabel("test accuracy", fontsize=9)
        figure.legend(*every[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
        return figure

    return styled(draw)(data)
