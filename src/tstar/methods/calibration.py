"""Post-hoc calibration: the temperature that suits a trained model's logits, and how well they fit.

Everything here takes **logits**, never probabilities, and does not guess which it was given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tstar.errors import TstarError, require

BOUNDS = (0.01, 100.0)  # of T
BINS = 15


@dataclass(frozen=True)
class ScalingFit:
    """T, the NLL on the data it was searched on at T = 1 and at T, and whether only a bound holds T."""

    temperature: float
    nll_before: float
    nll_after: float
    at_bound: bool


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram as data: for each bin of confidence, how often the model was right.

    ``confidence`` and ``accuracy`` are the bin's means (NaN where ``count`` is 0).
    """

    edges: tuple[float, ...]
    confidence: tuple[float, ...]
    accuracy: tuple[float, ...]
    count: tuple[int, ...]


def nll(logits: Tensor, targets: Tensor, temperature: float = 1.0) -> float:
    """The mean of −log softmax(z/T)_y, in float64."""
    return F.cross_entropy(logits.double() / temperature, targets).item()


def fit_temperature(
    logits: Tensor, targets: Tensor, bounds: tuple[float, float] = BOUNDS
) -> ScalingFit:
    r"""T = argmin over bounds of CE(z/T, y), searched over ln(1/T).

    CE is convex in 1/T, hence has one valley in ln(1/T), which a bounded scalar search finds
    (scipy's ``minimize_scalar``). T = 1 is kept where the search finds nothing better, so the NLL
    never gets worse. Where every sample is classified correctly the NLL falls forever as T → 0, so
    that T is as low as the bound, or rounding, lets it be: ``at_bound`` says so.

    Args:
        logits: (N, K), unnormalized. Never probabilities.
        targets: (N,) class numbers.
        bounds: the lowest and highest T.
    """
    optimize = require("scipy.optimize", "compare")
    low, high = bounds
    if not (0 < low < high < math.inf):
        raise TstarError(f"0 < lowest < highest must hold for the bounds of T, got {bounds!r}.")
    if logits.ndim != 2 or len(logits) != len(targets) or len(targets) == 0:
        raise TstarError(
            "logits must be (N, K) with one target per row and N >= 1, got shapes "
            f"{tuple(logits.shape)} and {tuple(targets.shape)}."
        )
    z = logits.detach().double()
    if not bool(torch.isfinite(z).all()):
        raise TstarError("logits must be finite, got NaN or infinity; the model has diverged.")
    found = optimize.minimize_scalar(
        lambda log_beta: nll(z, targets, math.exp(-log_beta)),
        bounds=(-math.log(high), -math.log(low)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    if not found.success:
        raise TstarError(f"The search for T must converge, but scipy reports: {found.message}")
    best, before = math.exp(-float(found.x)), nll(z, targets)
    after = nll(z, targets, best)
    if after > before:
        best, after = 1.0, before
    separable = bool((z.argmax(dim=1) == targets).all())
    at_bound = separable or not low * 1.001 <= best <= high / 1.001
    return ScalingFit(best, before, after, at_bound)


def calibration_error(probabilities: Tensor, targets: Tensor, bins: int = BINS) -> float:
    r"""Expected calibration error: Σ_b (n_b/n)·|accuracy_b − confidence_b|.

    Samples fall into ``bins`` equal intervals [b/B, (b+1)/B) of the largest probability; n_b is their
    number in bin b, and accuracy_b and confidence_b their means there.

    Reference: Guo et al., "On Calibration of Modern Neural Networks", 2017, eq. 3.
    """
    confidence, predicted = probabilities.detach().max(1)
    (gap,) = _sums(confidence, bins, (predicted == targets).double() - confidence.double())
    return float(gap.abs().sum() / len(targets))


def _sums(confidence: Tensor, bins: int, *values: Tensor) -> list[Tensor]:
    """The sum of each of several values over the samples of each bin of confidence."""
    edges = torch.linspace(0, 1, bins + 1, dtype=confidence.dtype, device=confidence.device)
    where = (torch.bucketize(confidence, edges, right=True) - 1).clamp_(0, bins - 1)
    return [v.new_zeros(bins).index_add_(0, where, v) for v in values]


def reliability(logits: Tensor, targets: Tensor, bins: int = BINS) -> Reliability:
    """The diagram's numbers: samples by their largest probability, in equal bins of [0, 1]."""
    confidence, predicted = logits.detach().double().softmax(dim=1).max(dim=1)
    correct = (predicted == targets).double()
    count, *sums = _sums(confidence, bins, torch.ones_like(confidence), confidence, correct)
    # 0/0 is NaN: a bin without samples has no mean.
    sure, right = (tuple((total / count).tolist()) for total in sums)
    edges = torch.linspace(0, 1, bins + 1, dtype=torch.float64)
    return Reliability(tuple(edges.tolist()), sure, right, tuple(map(int, count.tolist())))


def draw_panel(axes: Any, diagram: Reliability, title: str) -> None:
    """Bars are accuracy, dots its mean confidence; on the dashed line both agree.

    The area of a dot is the bin's share of the samples: few samples, little to say.
    """
    filled = [b for b, n in enumerate(diagram.count) if n]
    confidence, accuracy = ([d[b] for b in filled] for d in (diagram.confidence, diagram.accuracy))
    axes.bar(
        [diagram.edges[b] for b in filled],
        accuracy,
        diagram.edges[1] - diagram.edges[0],
        align="edge",
        color="#56B4E9",
        edgecolor="#0072B2",
        linewidth=0.6,
        label="accuracy in the bin",
    )
    sizes = [6 + 60 * diagram.count[b] / sum(diagram.count) for b in filled]
    axes.scatter(confidence, accuracy, sizes, color="#D55E00", zorder=3, label="mean confidence")
    axes.plot([0, 1], [0, 1], color="#1b1c1d", lw=1, ls="--", label="calibrated")
    axes.set_title(title, fontsize=8)
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
