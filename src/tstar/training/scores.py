"""What a trained model is worth on held-out data: accuracy, NLL, calibration error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tstar.methods.calibration import calibration_error
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
        slices = [slice(i, i + batch_size) for i in range(0, len(inputs), batch_size)]
        batches = (
            (inputs[s] for s in slices) if isinstance(inputs, Tensor) else inputs.batches(slices)
        )
        for batch in batches:
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
