"""What a trained model is worth on held-out data: accuracy, NLL, calibration error."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F

from tstar.methods.calibration import calibration_error
from tstar.methods.common import predict

__all__ = ["Scores", "calibration_error", "evaluate", "predict"]


class Scores(NamedTuple):
    """``loss`` is the mean negative log-likelihood in nats; accuracy and ECE are shares in [0, 1]."""

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
