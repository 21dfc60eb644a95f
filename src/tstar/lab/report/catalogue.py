"""The list of figures: what each is called, how to read it, and the two functions that make it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from tstar.errors import TstarError, unknown
from tstar.lab.report.figures import accuracy, heatmaps, softmax
from tstar.lab.report.records import Records
from tstar.lab.report.style import look

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PANELS = 12  # of one picture: whole rows of two, three or four


@dataclass(frozen=True)
class Plot:
    """One figure: records → frame → drawing. The frame's column ``panel`` groups its rows."""

    name: str
    paper: str  # the paper's figure that it is, if any
    title: str
    reading: str  # how to read it
    data: Callable[..., pd.DataFrame]
    drawing: Callable[[pd.DataFrame], Figure]
    needs_runs: bool = True  # if not, its data are made of nothing

    def frame(self, records: Records | None) -> pd.DataFrame:
        """Its data, from records if it needs runs."""
        if not self.needs_runs:
            return self.data()
        if records is None:
            raise TstarError(f"A figure of runs needs a store: tstar figure {self.name} runs.db")
        return self.data(records)

    def parts(self, frame: pd.DataFrame, panels: int = PANELS) -> list[pd.DataFrame]:
        """The data of each picture: panels in portions that can be read."""
        names = frame["panel"].unique()
        chunks = (names[first : first + panels] for first in range(0, len(names), panels))
        return [frame[frame["panel"].isin(chunk)] for chunk in chunks]

    def draw(self, frame: pd.DataFrame) -> Figure:
        """The picture of a frame in our style, whatever the settings of matplotlib."""
        with look():
            figure = self.drawing(frame)
            # Places are found once: every later save would find them again.
            figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
            figure.set_layout_engine(None)
            return figure


_FRAMES = (
    "Rows are feature counts M, columns temperatures, numbers medians over seeds, as in the paper. "
    "In each row the highest number is framed solid, the second highest "
    "dashed. The lowest tenth of the values share the darkest color."
)
_FIGURES = (
    Plot(
        "recommended",
        "",
        "The formula's T against the best T",
        "Each point is one condition. On the diagonal the formula hits the best temperature of the "
        "grid; the gray band is a factor of two. The color is the regret: what its T loses against "
        "the best one. Far off the diagonal with a small regret lies a flat optimum. "
        "Trainings that tstar's law was not measured on are not judged by it.",
        accuracy.recommended_data,
        accuracy.draw_recommended,
    ),
    Plot(
        "softmax",
        "Fig. 1",
        "The softmax of the same logits at several T",
        "The higher T, the flatter the distribution; the order of the classes stays.",
        softmax.softmax_data,
        softmax.draw_softmax,
        needs_runs=False,
    ),
    Plot(
        "loss",
        "Fig. 2",
        "The loss of one sample against a logit, without and with label smoothing",
        "Without smoothing the loss falls as the right class's logit grows, more slowly the higher "
        "T. With smoothing too large a logit costs again, and a higher T moves that point out.",
        softmax.loss_data,
        softmax.draw_loss,
        needs_runs=False,
    ),
    Plot(
        "sketch",
        "Fig. 3",
        "What tstar puts into a model",
        "Thick blue boxes are inserted: a BatchNorm before the output layer, and a division of the "
        "logits by T behind it. After the training both fold into the output layer.",
        softmax.sketch_data,
        softmax.draw_sketch,
        needs_runs=False,
    ),
    Plot(
        "accuracy",
        "Fig. 4, 8, 10",
        "Accuracy against T, without and with BN",
        "One panel per condition. Thick bars are the quartiles of the seeds, thin ones reach from "
        "the lowest to the highest, dashes mark the median. The line joins the means, between "
        "which accuracy is interpolated. The dotted line is the formula's T, which presupposes BN.",
        accuracy.accuracy_data,
        accuracy.draw_accuracy,
    ),
    Plot(
        "heatmaps",
        "Fig. 5",
        "T × M without BN",
        f"{_FRAMES} Follow the frames upwards to see whether the best T grows with M.",
        partial(heatmaps.heatmaps_data, norm="none"),
        heatmaps.draw_heatmaps,
    ),
    Plot(
        "heatmaps-bn",
        "Fig. 6",
        "T × M with BN before the output layer",
        f"{_FRAMES} The paper's claim is that the frames move in the same way in every panel.",
        partial(heatmaps.heatmaps_data, norm="batch"),
        heatmaps.draw_heatmaps,
    ),
    Plot(
        "bn-difference",
        "Fig. 7",
        "What BN changes at each T and M",
        "Accuracy with BN minus accuracy without, over the seeds of both: above zero (blue) BN "
        "helps. The last column compares the best T of each side. If it is bluer than T = 1, BN "
        "pays once T is right.",
        heatmaps.bn_difference_data,
        heatmaps.draw_bn_difference,
    ),
    Plot(
        "difficulty",
        "Fig. 9",
        "T × M over tasks of different csg",
        "One model and way of training: a line for each task in the order of their csg, without "
        f"BN and with it. {_FRAMES} If the formula's task terms hold, the frames move "
        "left as tasks get harder.",
        heatmaps.difficulty_data,
        heatmaps.draw_heatmaps,
    ),
    Plot(
        "largest-probability",
        "Fig. 11",
        "The largest probability against the number of classes",
        "The softmax of random normal logits at T = 1: with more classes its largest probability "
        "falls towards 1/K. Bars hold the middle half and nine tenths of the draws.",
        softmax.largest_probability_data,
        softmax.draw_largest_probability,
        needs_runs=False,
    ),
)
FIGURES = {figure.name: figure for figure in _FIGURES}


def get_figure(name: str) -> Plot:
    """The figure of that name."""
    if name not in FIGURES:
        raise unknown("figure", name, FIGURES)
    return FIGURES[name]
