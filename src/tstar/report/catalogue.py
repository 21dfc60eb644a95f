"""The list of figures: what each is called, how to read it, and the two functions that make it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tstar.errors import TstarError, unknown
from tstar.report.figures import (
    accuracy_boxes,
    bn_difference,
    closed_forms,
    cross_entropy,
    difficulty,
    heatmaps,
    largest_probability,
    norm_sweep,
    outline,
    recommended,
    softmax_outputs,
    valley,
)
from tstar.report.records import Records

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plot:
    """One figure of a report.

    Attributes:
        name: what ``tstar figure`` calls it, and its file. title: a few words.
        reading: one sentence or two on how to read it.
        make: records (nothing, for a figure that takes no runs) → what is drawn.
        draw: that → a figure.
        needs_runs: whether it must be given records. takes_runs: whether they change what is drawn.
        per_part: panels in one picture; a figure with more is drawn in parts. 0: always one.
    """

    name: str
    title: str
    reading: str
    make: Callable[..., Any]
    draw: Callable[[Any], Figure]
    needs_runs: bool = True
    takes_runs: bool = True
    per_part: int = 0

    def data(self, records: Records | None) -> Any:
        """What is drawn, as data."""
        if records is None and self.needs_runs:
            raise TstarError(
                f"The figure {self.name!r} is made from runs; give a store: tstar figure {self.name} runs.db. "
                f"Without runs: {', '.join(n for n, p in FIGURES.items() if not p.needs_runs)}."
            )
        return self.make(records) if self.takes_runs else self.make()

    def parts(self, data: Any) -> Sequence[Any]:
        """The data of each picture: panels in portions that can be read."""
        every = data.panels if self.per_part else ()
        if len(every) <= self.per_part:
            return [data]
        starts = range(0, len(every), self.per_part)
        return [data._replace(panels=every[i : i + self.per_part]) for i in starts]


_FIGURES = (
    Plot(
        "recommended",
        "The law's T against the best T",
        "Each point is one condition. On the diagonal the law hits the best temperature of the grid; the "
        "gray band is a factor of two either way. The thin line spans temperatures that are within one "
        "standard error of the best. Color and size are the regret: what the law's T loses against the "
        "best one. A point far off the diagonal with a small regret lies on a flat optimum.",
        recommended.recommended_data,
        recommended.draw_recommended,
    ),
    Plot(
        "accuracy",
        "Accuracy against T",
        "One panel per condition. Bars are seeds (thick: quartiles; thin: whiskers; triangles mark the median), crosses "
        "are means, and the line is the interpolation between them, linear in ln T. The "
        "dashed line is the law's T.",
        accuracy_boxes.accuracy_boxes_data,
        accuracy_boxes.draw_accuracy_boxes,
        per_part=12,
    ),
    Plot(
        "heatmaps",
        "T × M without BN",
        "Rows are feature counts M, columns are temperatures, numbers are median accuracies over seeds. In "
        "each row the best T is framed solid and the second best dashed, by validation accuracy (test accuracy where none "
        "was held out), so that a framed number need not be the highest: follow the frames upwards to see "
        "whether the best T grows with M. All values below the lowest tenth share the darkest color.",
        partial(heatmaps.heatmaps_data, norm="none"),
        heatmaps.draw_heatmaps,
        per_part=12,
    ),
    Plot(
        "heatmaps-bn",
        "T × M with BN",
        "As above, with BatchNorm before the output layer. The paper's claim is that the frames move in the "
        "same way in every panel.",
        partial(heatmaps.heatmaps_data, norm="batch"),
        heatmaps.draw_heatmaps,
        per_part=12,
    ),
    Plot(
        "bn-difference",
        "What BN changes, at T = 1 and at the best T",
        "Accuracy with BN minus accuracy without, bars are one standard error over seeds. Above zero BN "
        "helps. The solid line keeps T = 1; the dashed one gives each side its own best T.",
        bn_difference.bn_difference_data,
        bn_difference.draw_bn_difference,
        per_part=16,
    ),
    Plot(
        "difficulty",
        "T × M over tasks of different csg",
        "As the heatmaps, for one model and way of training, over its tasks in the order of their difficulty csg (in brackets), "
        "each without BN and with it where that was run; colors are relative to a task. If the formula's task terms hold, the "
        "frames move left as tasks get harder.",
        difficulty.difficulty_data,
        heatmaps.draw_heatmaps,
        per_part=12,
    ),
    Plot(
        "norm-sweep",
        "T with and without BN",
        "One panel per condition: mean accuracy and its standard error over seeds at each T, with BN (solid) and "
        "without (dashed); the dotted line is the law's T, which presupposes BN.",
        norm_sweep.norm_sweep_data,
        norm_sweep.draw_norm_sweep,
        per_part=12,
    ),
    Plot(
        "valley",
        "What the runs say about α and β",
        "Points lost when T = α·sqrt(M) + β is used with these coefficients; the axis of β is replaced by T at the middle width. "
        "Inside the black line less than 0.1 points are lost: where that valley is long, the runs say which T is good but not how it "
        "grows with M. Where it says not told apart, the valley runs to the bound of the search, and a fit gives no interval.",
        valley.valley_data,
        valley.draw_valley,
        per_part=12,
    ),
    Plot(
        "rules",
        "Every closed-form rule on one axis",
        "T against M for every rule that needs no training, both axes logarithmic. A cosine scale s counts as "
        "T = r·sqrt(M)/s with r = 1/sqrt(3), the row norm at default initialization; µP's base width is 64. "
        "Circles are the best T of the runs, by validation accuracy as in the heatmaps. tstar's own law needs a training "
        "besides M and K: it has a line where all runs of a panel share one that it knows.",
        closed_forms.closed_forms_data,
        closed_forms.draw_closed_forms,
        needs_runs=False,
        per_part=6,
    ),
    Plot(
        "outline",
        "The model with BN inserted",
        "What tempering a model changes: a BatchNorm just before the output layer, and the logits divided by T.",
        outline.outline_data,
        outline.draw_outline,
        needs_runs=False,
        takes_runs=False,
    ),
    Plot(
        "softmax",
        "Softmax outputs at several T",
        "The same five logits at each temperature: a low T puts all on the largest, a high T makes all alike.",
        softmax_outputs.softmax_outputs_data,
        softmax_outputs.draw_softmax_outputs,
        needs_runs=False,
        takes_runs=False,
    ),
    Plot(
        "cross-entropy",
        "Cross-entropy against the logit",
        "The loss of one sample as its true class's logit grows and the others stay at 0. Without label "
        "smoothing it falls forever, more slowly at a high T; with it there is a best logit, "
        "T·ln(1 + K(1 − ε)/ε), which T only rescales.",
        cross_entropy.cross_entropy_data,
        cross_entropy.draw_cross_entropy,
        needs_runs=False,
        takes_runs=False,
    ),
    Plot(
        "largest-probability",
        "The largest softmax probability against K",
        "Simulated: logits independent N(0, 1), T = 1, 2,000 draws for each number of classes (log2 axis). "
        "The paper's appendix leaves the distribution of the logits open; this is our reading of it.",
        largest_probability.largest_probability_data,
        largest_probability.draw_largest_probability,
        needs_runs=False,
        takes_runs=False,
    ),
)
FIGURES = {figure.name: figure for figure in _FIGURES}


def get_figure(name: str) -> Plot:
    """The figure of that name."""
    if name not in FIGURES:
        raise unknown("figure", name, FIGURES)
    return FIGURES[name]
