"""What a trained model is worth on data: its logits, accuracy, loss and calibration error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tstar.output_layer import in_mode

# Numbers in a batch that is measured: 512 images of 32×32. Larger ones leave the caches.
_VALUES = 512 * 3 * 32 * 32


@torch.no_grad()
def predict(
    model: nn.Module,
    inputs: Any,
    *,
    prepare: Callable[[Tensor], Tensor] | None = None,
    amp: bool = False,
) -> Tensor:
    """The logits of a tensor (or ``Rows``) in eval mode, in float32 or better.

    Batches have 512 samples, or fewer if samples are large. Every module's own mode is restored.
    """
    size = min(512, max(16, _VALUES // max(1, int(inputs[:1].numel()))))
    slices = [slice(i, i + size) for i in range(0, len(inputs), size)]
    parts = []
    with in_mode(model):
        for batch in (inputs[s] for s in slices):
            ready = batch if prepare is None else prepare(batch)
            with torch.autocast(inputs.device.type, dtype=torch.bfloat16, enabled=amp):
                logits: Tensor = model(ready)
            parts.append(logits.to(torch.promote_types(logits.dtype, torch.float32)))
    return torch.cat(parts)


class Scores(NamedTuple):
    """``loss`` is the mean negative log-likelihood in nats; the others are shares in [0, 1]."""

    accuracy: float
    loss: float
    ece: float


def evaluate(logits: Tensor, targets: Tensor) -> Scores:
    """Accuracy, mean cross-entropy and calibration error of logits against integer targets."""
    return Scores(
        accuracy=float((logits.argmax(1) == targets).double().mean()),
        loss=float(F.cross_entropy(logits.double(), targets)),
        ece=calibration_error(logits.softmax(1), targets),
    )


def calibration_error(probabilities: Tensor, targets: Tensor) -> float:
    r"""Expected calibration error: Σ_b (n_b/n)·|accuracy_b − confidence_b|.

    Bin b of B = 15 holds the samples whose largest probability lies in [b/B, (b+1)/B).

    Reference: Guo et al., "On Calibration of Modern Neural Networks", 2017, eq. 3.
    """
    bins = 15
    sure, predicted = probabilities.detach().max(1)
    edges = torch.linspace(0, 1, bins + 1, dtype=sure.dtype, device=sure.device)
    of = (torch.bucketize(sure, edges, right=True) - 1).clamp_(0, bins - 1)
    gaps = (predicted == targets).double() - sure.double()
    return float(gaps.new_zeros(bins).index_add(0, of, gaps).abs().sum() / len(targets))
