r"""The highest temperature that a way of training can learn at.

Dividing logits by T is a head that starts at 1/T and, with SGD, learns at lr/T² (``tstar.surgery.reparametrization``). Its
inputs are batch-normed, ‖h‖² ≈ M, so one step moves a logit by about lr·M/T² of its gradient; with Adam, whose steps
do not see the gradient's scale, by about lr·M/T. Over a run the logits of a class, one sample in K, must be able to
move far enough to fit it, which bounds T:

    SGD     T ≤ c·sqrt(lr·steps·M/K)
    Adam    T ≤ a·lr·steps·M

c and a are measured (``coefficients.json``, results/budget); nothing is advised below the lowest T that was tried.
lr·steps is that of a rate which falls to zero, and of momentum 0.9 (:attr:`tstar.formula.training.Training.spent`).

Pure Python: nothing here imports torch or NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tstar.errors import TstarError, unknown
from tstar.formula.training import Training
from tstar.numbers import number, positive

_NUMBERS = ("sgd", "adam", "minimum")
_FAMILIES = ("sgd", "adam")


@dataclass(frozen=True)
class Budget:
    """c and a of the bound, the lowest T to advise, and the range of lr·steps measured, by family."""

    sgd: float
    adam: float
    minimum: float = 0.25
    fitted: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            positive(f"{name} of a budget", getattr(self, name))
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
    return {name: read_range("lr·steps", ends) for name, ends in fitted.items()}


def read_range(name: str, ends: object) -> tuple[float, float]:
    """[low, high] with 0 <= low <= high, both finite."""
    if isinstance(ends, list | tuple) and len(ends) == 2:
        low, high = (number(f"An end of the range of {name}", end) for end in ends)
        if 0 <= low <= high:
            return low, high
    raise TstarError(f"The range of {name} must be [low, high], got {ends!r}.")


def limit(b: Budget, M: float, K: float, training: Training) -> tuple[float, str]:
    """The highest T that the run allows, and how it reads with its numbers in place."""
    spent = training.spent
    if training.family == "sgd":
        T = b.sgd * math.sqrt(spent * M / K)
        return T, f"c·sqrt(lr·steps·M/K) = {b.sgd:g}·sqrt({spent:.4g}·{M:g}/{K:g})"
    return b.adam * spent * M, f"a·lr·steps·M = {b.adam:g}·{spent:.4g}·{M:g}"


def within(b: Budget, limit: float, T: float) -> float:
    """The lower of T* and the limit, but nothing that was not tried."""
    return max(min(T, limit), min(T, b.minimum))
