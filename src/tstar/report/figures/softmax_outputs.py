"""Softmax outputs for one fixed vector of logits at several temperatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tstar.report.style import BLUE, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOGITS = (1.0, 4.0, 2.0, -1.0, 0.5)


class SoftmaxOutputs(NamedTuple):
    """``probabilities[i]`` are those of all classes at ``temperatures[i]``."""

    logits: NDArray[np.float64]
    temperatures: tuple[float, ...]
    probabilities: NDArray[np.float64]


def softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(z_j)/Σ_k exp(z_k) over the last axis, without overflow."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    result: NDArray[np.float64] = shifted / shifted.sum(axis=-1, keepdims=True)
    return result


def softmax_outputs_data(
    logits: Sequence[float] = LOGITS, temperatures: Sequence[float] = (0.5, 1, 2, 4, 16)
) -> SoftmaxOutputs:
    """softmax(z/T) for each T."""
    z = np.asarray(logits, dtype=float)
    Ts = tuple(float(T) for T in temperatures)
    return SoftmaxOutputs(z, Ts, softmax(z / np.array(Ts)[:, None]))


@styled
def draw_softmax_outputs(data: SoftmaxOutputs) -> Figure:
    figure = new_figure(8.2, 2.2)
    classes = np.arange(1, len(data.logits) + 1)
    every = figure.subplots(1, len(data.temperatures), sharey=True, squeeze=False)[0]
    for axes, T, row in zip(every, data.temperatures, data.probabilities, strict=True):
        bars = axes.bar(classes, row, color=BLUE, width=0.7)
        axes.bar_label(bars, [f"{p:.2f}" for p in row], fontsize=7, padding=1)
        axes.set_title(f"T = {T:g}")
        axes.set_xticks(classes, [f"{z:g}" for z in data.logits])
        axes.set_ylim(0, 1.1)
    every[0].set_ylabel("probability")
    figure.supxlabel("logit of each class", fontsize=9)
    return figure
