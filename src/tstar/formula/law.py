r"""The highest temperature that a way of training can learn at.

Dividing logits by T is a head that starts at 1/T and, with SGD, learns at lr/T² (``tstar.surgery.reparametrization``). Its
inputs are batch-normed, ‖h‖² ≈ M, so one step moves a logit by about lr·M/T² of its gradient; with Adam, whose steps
do not see the gradient's scale, by about lr·M/T. Over a run the logits of a class, one sample in K, must be able to
move far enough to fit it, which bounds T:

    SGD     T ≤ c·sqrt(lr·steps·M/K)
    Adam    T ≤ a·lr·steps·M

c and a are measured (``coefficients.json``, results/budget); nothing is advised below the lowest T that was tried.
lr is the highest rate of a schedule that falls to zero; momentum μ counts as the factor 1/(1 − μ) by which it lengthens
SGD's steps, relative to the 0.9 of the runs.

Pure Python: nothing here imports torch or NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tstar.errors import TstarError, unknown

MOMENTUM = 0.9  # of the runs that the numbers were measured on
# Names in torch, transformers, DeepSpeed and bitsandbytes; what follows "_" or "8bit" is how, not what.
_FAMILIES = {
    "sgd": ("sgd", "sgdw"),
    "adam": ("adam", "adamw", "nadam", "nadamw", "radam", "fusedadam", "deepspeedcpuadam",
             "pagedadam", "pagedadamw"),
}  # fmt: skip
_NUMBERS = ("sgd", "adam", "minimum")


@dataclass(frozen=True)
class Budget:
    """c and a of the bound, the lowest T to advise, and the range of lr·steps measured, by family."""

    sgd: float
    adam: float
    minimum: float = 0.25
    fitted: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TstarError(f"{name} of a budget must be a number, got {value!r}.")
            if not (math.isfinite(value) and value > 0):
                raise TstarError(f"{name} of a budget must be finite and positive, got {value!r}.")
        object.__setattr__(self, "fitted", _ranges(self.fitted))

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON types."""
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        return {**numbers, "fitted": {name: list(ends) for name, ends in self.fitted.items()}}

    @classmethod
    def from_dict(cls, data: object) -> Budget:
        """The inverse of :meth:`to_dict`."""
        if not isinstance(data, Mapping):
            raise TstarError(f"budget must be a table of numbers, got {data!r}.")
        missing = [name for name in _NUMBERS[:-1] if name not in data]
        if missing:
            raise TstarError(f"A budget needs {', '.join(missing)}; got {sorted(data)}.")
        strange = sorted(set(data) - {*_NUMBERS, "fitted"})
        if strange:
            raise unknown("field of a budget", strange[0], (*_NUMBERS, "fitted"))
        numbers = {name: data[name] for name in _NUMBERS if name in data}
        return cls(**numbers, fitted=data.get("fitted", {}))


def _ranges(fitted: object) -> dict[str, tuple[float, float]]:
    """The ranges of lr·steps by family, if they are that."""
    if not isinstance(fitted, Mapping) or not set(fitted) <= set(_FAMILIES):
        raise TstarError(
            f"fitted of a budget must give a range for {' and '.join(_FAMILIES)}, got {fitted!r}."
        )
    ranges = {}
    for name, ends in fitted.items():
        try:
            low, high = (float(end) for end in ends)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not 0 <= low <= high < math.inf:
            raise TstarError(f"The range of lr·steps must be [low, high], got {ends!r}.")
        ranges[name] = (low, high)
    return ranges


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
    name = optimizer.lower().partition("_")[0].removesuffix("8bit").removesuffix("32bit")
    return next((kind for kind, names in _FAMILIES.items() if name in names), None)


def limit(b: Budget, M: float, K: float, training: Training) -> tuple[float, str]:
    """The highest T that the run allows, and how it reads with its numbers in place."""
    if training.family == "sgd":
        T = b.sgd * math.sqrt(training.spent * M / K)
        return T, f"c·sqrt(lr·steps·M/K) = {b.sgd:g}·sqrt({training.spent:.4g}·{M:g}/{K:g})"
    T = b.adam * training.spent * M
    return T, f"a·lr·steps·M = {b.adam:g}·{training.spent:.4g}·{M:g}"
