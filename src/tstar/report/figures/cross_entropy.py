"""Cross-entropy against the true class's logit, at several T, without and with label smoothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tstar.report.style import COLORS, LINES, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class CrossEntropy(NamedTuple):
    """``losses[s, t]`` is the loss over ``logits`` at ``smoothings[s]`` and ``temperatures[t]``."""

    logits: NDArray[np.float64]
    temperatures: tuple[float, ...]
    smoothings: tuple[float, ...]
    losses: NDArray[np.float64]
    num_classes: int


def cross_entropy_data(
    num_classes: int = 10,
    temperatures: Sequence[float] = (1, 2, 4, 8),
    smoothings: Sequence[float] = (0.0, 0.1),
    logits: NDArray[np.float64] | None = None,
) -> CrossEntropy:
    """−Σ_j y'_j·ln softmax_j(z/T), with z the true class's logit and 0 for all others.

    y' = (1 − ε)·y + ε/K. With the others at 0, ln Σ_k exp(z_k/T) = ln(exp(z/T) + K − 1), and only the
    true class's term contains z.
    """
    z = np.linspace(-10, 50, 241) if logits is None else np.asarray(logits, dtype=float)
    T = np.asarray(temperatures, dtype=float)[None, :, None]
    eps = np.asarray(smoothings, dtype=float)[:, None, None]
    normalizer = np.logaddexp(z / T, np.log(num_classes - 1))
    losses = normalizer - (1 - eps + eps / num_classes) * z / T
    return CrossEntropy(
        z, tuple(map(float, temperatures)), tuple(map(float, smoothings)), losses, num_classes
    )


@styled
def draw_cross_entropy(data: CrossEntropy) -> Figure:
    figure = new_figure(7.2, 2.9)
    every = figure.subplots(1, len(data.smoothings), sharey=True, squeeze=False)[0]
    for axes, eps, rows in zip(every, data.smoothings, data.losses, strict=True):
        for i, (T, loss) in enumerate(zip(data.temperatures, rows, strict=True)):
            axes.plot(
                data.logits,
                loss,
                color=COLORS[i % len(COLORS)],
                ls=LINES[i % len(LINES)],
                label=f"T = {T:g}",
            )
        axes.set_title("no label smoothing" if eps == 0 else f"label smoothing ε = {eps:g}")
        axes.set_xlabel("logit of the true class (others 0)")
        axes.set_ylim(0, None)
        axes.grid(axis="y")
    every[0].set_ylabel(f"cross-entropy, K = {data.num_classes}")
    every[-1].legend()
    return figure
