"""What a trained model is worth on held-out data: accuracy, NLL, calibration error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tstar.methods.common import measuring_batch

if TYPE_CHECKING:
    from tstar.training.parts import Samples


class Scores(NamedTuple):
    """``loss`` is the mean negative log-likelihood in nats; accuracy and ECE are shares in [0, 1]."""

    accuracy: float
    loss: float
    ece: float


@torch.no_grad()
def predict(
    model: nn.Module,
    inputs: Tensor | Samples,
    *,
    prepare: Callable[[Tensor], Tensor] | None = None,
    batch_size: int | None = None,
    amp: bool = False,
) -> Tensor:
    """The logits of ``inputs`` in eval mode, as float32; the model's mode is restored."""
    if batch_size is None:
        batch_size = measuring_batch(inputs)
    was_training = model.training
    model.eval()
    device_type = inputs.device.type
    try:
        parts = []
        for start in range(0, len(inputs), batch_size):
            batch = inputs[start : start + batch_size]
            batch = batch if prepare is None else prepare(batch)
            with torch.autocast(device_type, dtype=torch.bfloat16, enabled=amp):
                parts.append(model(batch).float())
        return torch.cat(parts)
    finally:
        model.train(was_training)


def evaluate(logits: Tensor, targets: Tensor) -> Scores:
    """Accuracy, mean cross-entropy and calibration error of logits against integer targets."""
    return Scores(
        accuracy=float((logits.argmax(1) == targets).double().mean()),
        loss=float(F.cross_entropy(logits.double(), targets)),
        ece=calibration_error(logits.softmax(1), targets),
    )


def calibration_error(probabilities: Tensor, targets: Tensor, bins: int = 15) -> float:
    r"""Expected calibration error: Σ_b (n_b/n)·|accuracy_b − confidence_b|.

    Samples fall into ``bins`` equal intervals [b/B, (b+1)/B) of the largest probability; n_b is their
    number in bin b, and accuracy_b and confidence_b their means there.

    Reference: Guo et al., "On Calibration of Modern Neural Networks", 2017, eq. 3.
    """
    confidence, predicted = probabilities.max(1)
    edges = torch.linspace(0, 1, bins + 1, dtype=confidence.dtype, device=confidence.device)
    where = (torch.bucketize(confidence, edges, right=True) - 1).clamp_(0, bins - 1)
    gap = (predicted == targets).double() - confidence.double()
    total = torch.zeros(bins, dtype=torch.double, device=gap.device).index_add_(0, where, gap)
    return float(total.abs().sum() / len(targets))
