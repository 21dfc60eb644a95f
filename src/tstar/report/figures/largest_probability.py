"""The largest softmax probability against the number of classes, simulated.

The paper's appendix shows such a figure and leaves the logits' distribution open. Ours: independent
N(0, 1) logits at T = 1. That is our reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tstar.report.figures.boxes import Box, box_of
from tstar.report.figures.softmax_outputs import softmax
from tstar.report.style import BLUE, INK, SKY, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CLASSES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class LargestProbability(NamedTuple):
    """One box for each number of classes."""

    classes: tuple[int, ...]
    boxes: tuple[Box, ...]
    samples: int
    temperature: float


def largest_probability_data(
    classes: Sequence[int] = CLASSES,
    samples: int = 2000,
    temperature: float = 1.0,
    seed: int = 0,
) -> LargestProbability:
    """max_j softmax_j(z/T) for z_j ~ N(0, 1) independent, ``samples`` draws for each K."""
    rng = np.random.default_rng(seed)
    boxes = tuple(
        box_of(softmax(rng.standard_normal((samples, K)) / temperature).max(axis=1))
        for K in classes
    )
    return LargestProbability(tuple(classes), boxes, samples, temperature)


@styled
def draw_largest_probability(data: LargestProbability) -> Figure:
    figure = new_figure(5.4, 3.1)
    axes = figure.add_subplot()
    positions = np.log2(data.classes)
    axes.bxp(
        [box.drawn() for box in data.boxes],
        positions=positions,
        widths=0.55,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": SKY, "edgecolor": INK, "alpha": 0.7},
        medianprops={"color": INK, "linewidth": 1.6},
        whiskerprops={"color": INK},
        capprops={"color": INK},
    )
    axes.plot(positions, [box.mean for box in data.boxes], "o-", color=BLUE, ms=4, label="mean")
    axes.plot(positions, [1 / K for K in data.classes], ":", color=INK, label="1/K")
    axes.set_xticks(positions, [str(K) for K in data.classes])
    axes.set_xlabel("number of classes K")
    axes.set_ylabel("largest softmax probability")
    axes.set_ylim(0, 1)
    axes.grid(axis="y")
    axes.legend()
    return figure
