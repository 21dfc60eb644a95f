"""The list of figures: what each is called, how to read it, and the two functions that make it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from tstar.errors import unknown
from tstar.lab.report.figures import accuracy, heatmaps, recommended
from tstar.lab.report.records import Records

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plot:
    """One figure of a report: ``data`` gives a DataFrame, ``draw`` draws it.

    Its column ``panel`` says which rows belong to one panel, and ``reading`` how to read it. A
    figure with more panels than ``per_part`` is drawn in parts. ``draw(…, legend=False)`` leaves
    the ``legend`` to the page.
    """

    name: str
    title: str
    reading: str
    data: Callable[[Records], pd.DataFrame]
    draw: Callable[..., Figure]
    per_part: int = 12
    legend: tuple[Mapping[str, Any], ...] = ()

    def parts(self, frame: pd.DataFrame, per_part: int | None = None) -> list[pd.DataFrame]:
        """The data of each picture: panels in portions that can be read."""
        panels = frame["panel"].factorize()[0] // (per_part or self.per_part)
        return [frame[panels == part] for part in range(panels.max() + 1)]


_FRAMES = (
    "Rows are feature counts M, columns are temperatures, numbers are medians over seeds. In each "
    "row the best T is framed solid and the second best dashed. Validation accuracy chose the "
    "frames, if it was held out, so a framed test accuracy need not be the highest of its row. "
    "The lowest tenth of the values share the darkest color."
)
_FIGURES = (
    Plot(
        "recommended",
        "The law's T against the best T",
        "Each point is one condition. On the diagonal the law hits the best temperature of the "
        "grid; the gray band is a factor of two either way. Color and size are the regret: what "
        "the law's T loses against the best one. A point far off the diagonal with a small regret "
        "lies on a flat optimum. Trainings that the law was not measured on are not judged.",
        recommended.recommended_data,
        recommended.draw_recommended,
    ),
    Plot(
        "accuracy",
        "Accuracy against T, without and with BN",
        "One panel per condition. Thick bars are the quartiles of the seeds, thin ones reach from "
        "the lowest to the highest, dashes mark the median. The line joins the means. The dotted "
        "line is the law's T, which presupposes BN.",
        accuracy.accuracy_data,
        accuracy.draw_accuracy,
        legend=accuracy.LEGEND,
    ),
    Plot(
        "heatmaps",
        "T × M without BN",
        f"{_FRAMES} Follow the frames upwards to see whether the best T grows with M.",
        partial(heatmaps.heatmaps_data, norm="none"),
        heatmaps.draw_heatmaps,
    ),
    Plot(
        "heatmaps-bn",
        "T × M with BN before the output layer",
        f"{_FRAMES} The paper's claim is that the frames move in the same way in every panel.",
        partial(heatmaps.heatmaps_data, norm="batch"),
        heatmaps.draw_heatmaps,
    ),
    Plot(
        "bn-difference",
        "What BN changes, at T = 1 and at the best T",
        "Accuracy with BN minus accuracy without, bars are one standard error over seeds. Above "
        "zero BN helps. The solid line keeps T = 1; the dashed one gives each side its own best T.",
        accuracy.bn_difference_data,
        accuracy.draw_bn_difference,
        per_part=16,
        legend=accuracy.AT_LEGEND,
    ),
    Plot(
        "difficulty",
        "T × M over tasks of different csg",
        f"One model and way of training, over its tasks in the order of their csg. {_FRAMES} If "
        "the formula's task terms hold, the frames move left as tasks get harder.",
        heatmaps.difficulty_data,
        heatmaps.draw_heatmaps,
    ),
)
FIGURES = {figure.name: figure for figure in _FIGURES}


def get_figure(name: str) -> Plot:
    """The figure of that name."""
    if name not in FIGURES:
        raise unknown("figure", name, FIGURES)
    return FIGURES[name]
