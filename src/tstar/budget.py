r"""The highest temperature that a training budget allows: the equation's only home.

Dividing logits by T is a head that starts at 1/T and, with SGD, learns at lr/T² (``tstar.reparametrisation``). Its
inputs are batch-normed, ‖h‖² ≈ M, and one sample in K is of a given class; so over a run the logits of a class can
move by about lr·steps·M/(T²·K). With Adam a step moves every weight by about lr, whatever the gradient, and they
move by about lr·steps·M/T. Training is too hot when that is too little, which bounds T:

    SGD     T ≤ c·sqrt(lr·steps·M/K)
    Adam    T ≤ a·lr·steps·M

c and a are measured (``coefficients.json``, results/budget). lr is the highest rate of a schedule that falls to zero;
momentum μ counts as the factor 1/(1 − μ) by which it lengthens SGD's steps, relative to the 0.9 of the runs.

Pure Python: nothing here imports torch or NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tstar.errors import TstarError

MOMENTUM = 0.9  # of the runs that c was measured on
_ADAM = ("adam", "nadam", "radam")


@dataclass(frozen=True)
class Budget:
    """c and a of the bound, the lowest T that was tried, and the range of lr·steps that was measured, by family."""

    sgd: float
    adam: float
    minimum: float = 0.25
    fitted: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("sgd", "adam", "minimum"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TstarError(f"{name} of a budget must be a number, got {value!r}.")
            if not (math.isfinite(value) and value > 0):
                raise TstarError(f"{name} of a budget must be finite and positive, got {value!r}.")

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON types."""
        ranges = {family: list(bounds) for family, bounds in self.fitted.items()}
        return {"sgd": self.sgd, "adam": self.adam, "minimum": self.minimum, "fitted": ranges}

    @classmethod
    def from_dict(cls, data: object) -> Budget:
        """The inverse of :meth:`to_dict`."""
        if not isinstance(data, Mapping) or not {"sgd", "adam"} <= set(data):
            raise TstarError(f"A budget needs the numbers sgd and adam, got {data!r}.")
        ranges = {name: (float(low), float(high)) for name, (low, high) in data.get("fitted", {}).items()}  # fmt: skip
        return cls(data["sgd"], data["adam"], data.get("minimum", 0.25), ranges)


@dataclass(frozen=True)
class Training:
    """How one means to train: optimiser family, highest learning rate, steps, and SGD's momentum."""

    family: str
    lr: float
    steps: int
    momentum: float = MOMENTUM

    @property
    def spent(self) -> float:
        """lr·steps, for SGD as if with momentum 0.9."""
        longer = (1 - MOMENTUM) / (1 - self.momentum) if self.family == "sgd" else 1.0
        return self.lr * self.steps * longer


def family(optimizer: str) -> str | None:
    """``"sgd"``, ``"adam"`` (with AdamW, NAdam, …), or ``None`` for an optimiser that was not measured."""
    name = optimizer.lower()
    if name.startswith("sgd"):
        return "sgd"
    return "adam" if name.startswith(_ADAM) else None


def limit(budget: Budget, num_features: float, num_classes: float, training: Training) -> float:
    """The highest T that this training allows, before any clip."""
    reach = training.spent * num_features
    if training.family == "sgd":
        return budget.sgd * math.sqrt(reach / num_classes)
    return budget.adam * reach


def expression(budget: Budget, num_features: float, num_classes: float, training: Training) -> str:
    """How the bound reads with its numbers in place."""
    reach = f"{training.spent:.4g}·{num_features:g}"
    if training.family == "sgd":
        return f"c·sqrt(lr·steps·M/K) = {budget.sgd:g}·sqrt({reach}/{num_classes:g})"
    return f"a·lr·steps·M = {budget.adam:g}·{reach}"
