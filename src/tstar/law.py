r"""The temperature that suits a way of training.

Dividing logits by T is a head that starts at 1/T and, with SGD, learns at lr/T² (``groups.py``).
Its inputs are batch-normed, ‖h‖² ≈ M, so one step moves a sample's own logit by about lr·M/T² of
its gradient. Steps on different batches point in different directions: over a run the head travels
like a random walk, with the root of the number of steps. More classes, larger batches and less
momentum make it shorter, as fewer steps would, steps/(K·B·(1 − μ)). T gives it a fixed length:

    SGD     T = c·sqrt(lr·M)·(steps/(K·B·(1 − μ)))^p,    p = 1/4

With Adam, whose steps do not see the gradient's scale, accuracy hardly depends on T: one number, a;
and a lower one for fine-tuning, in which a new head has few steps to grow (``adam_finetune``).

c was fitted on the first atlas; the second tested the law (results/atlas2). In the paper's own
setting the two agree: M = 512, K = 10, 7,800 steps of 128 at 0.1 give 12.2, its ``base`` 11.7.
Pure Python. Whether to use this T is decided in ``advice.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tstar.checks import positive
from tstar.errors import TstarError
from tstar.training import Training

BATCH = 64  # samples per step, unless told


@dataclass(frozen=True)
class Law:
    """c of SGD, a of Adam and of Adam in fine-tuning, p, and the lowest and highest T to advise."""

    sgd: float
    adam: float
    power: float = 0.25
    minimum: float = 0.25
    maximum: float = 64.0
    adam_finetune: float | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None:
                positive(f"{name} of a law", value)

    def temperature(self, num_features: float, num_classes: float, training: Training) -> float:
        """T for M features, K classes and a training with optimizer, rate and steps.

        >>> how = Training("sgd", lr=0.1, steps=7800, batch_size=128)
        >>> round(Law(sgd=0.61, adam=2.0).temperature(512, 10, how), 1)
        12.2
        """
        if training.lr is None or training.steps is None or not training.covered:
            raise TstarError("T needs SGD or Adam's family, lr and steps.")
        if training.family == "sgd":
            batch = training.batch_size or BATCH
            per_class = training.steps / (num_classes * batch * training.rest)
            T = self.sgd * (training.lr * num_features) ** 0.5 * per_class**self.power
        else:
            T = (training.scenario == "finetune" and self.adam_finetune) or self.adam
        return float(min(max(T, self.minimum), self.maximum))

    def expression(self, training: Training) -> str:
        """How the law reads for a training, its constants in place."""
        if training.family == "sgd":
            return f"{self.sgd:g}·sqrt(lr·M)·(steps/(K·B·(1 − μ)))^{self.power:g}"
        kind = " in fine-tuning" if training.scenario == "finetune" else ""
        return f"the T of Adam and AdamW{kind}"

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON types."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Law:
        """The inverse of :meth:`to_dict`; a field ``fitted`` of older files is not used."""
        known = {name: value for name, value in data.items() if name != "fitted"}
        return cls(**known | {"power": data["power"]})  # version 0.1 had none, and another law
