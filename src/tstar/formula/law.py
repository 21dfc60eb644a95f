r"""The temperature that suits a way of training.

Dividing logits by T is a head that starts at 1/T and, with SGD, learns at lr/T² (``tstar.surgery.reparametrization``). Its
inputs are batch-normed, ‖h‖² ≈ M, so one step moves a sample's own logit by about lr·M/T² of its gradient. Steps on
different batches point in different directions: over a run the head travels like a random walk, with the root of the
number of steps that each class has, steps/(K·B·(1 − μ)). The T that gives this walk a fixed length is

    SGD     T = c·sqrt(lr·M)·(steps/(K·B·(1 − μ)))^p,    p = 1/4

With Adam, whose steps do not see the gradient's scale, accuracy hardly depends on T: one number, a; and a lower one for
fine-tuning, where a new head has few steps to grow (``adam_finetune``).

c was fitted on the first atlas; the law was tested on the second, which had no part in it (``coefficients.json``,
results/atlas2). Where the paper fitted its formula the law agrees with it: M = 512, K = 10, 7,800 steps of 128 at 0.1 give 12.2,
the paper's ``base`` 11.7.

A set without p is a bound on T* in place of a temperature, as version 0.1 had it, and is still read:
T = min(T*, c·sqrt(lr·steps·M/K)) for SGD, min(T*, a·lr·steps·M) for Adam.

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
_LATER = ("power", "maximum", "adam_finetune")  # of a law; a bound has none of them
_FAMILIES = ("sgd", "adam")
BATCH = 64  # samples per step, where they are not told


@dataclass(frozen=True)
class Budget:
    """c and a, the lowest and highest T to advise, the range of lr·steps measured, by family; p and a in fine-tuning of a law."""

    sgd: float
    adam: float
    minimum: float = 0.25
    fitted: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    power: float | None = None
    maximum: float = math.inf
    adam_finetune: float | None = None

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            positive(f"{name} of a budget", getattr(self, name))
        if self.power is not None:
            positive("power of a budget", self.power)
            positive("maximum of a budget", self.maximum)
        if self.adam_finetune is not None:
            positive("adam_finetune of a budget", self.adam_finetune)
        object.__setattr__(self, "fitted", _ranges(self.fitted))

    @property
    def is_law(self) -> bool:
        """Whether it gives T itself, rather than a bound on the paper's."""
        return self.power is not None

    def clip(self, T: float) -> float:
        """T within what was tried."""
        return min(max(T, self.minimum), self.maximum)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON types."""
        names = (*_NUMBERS, *_LATER) if self.is_law else _NUMBERS
        numbers = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return {**numbers, "fitted": {name: list(ends) for name, ends in self.fitted.items()}}

    @classmethod
    def from_dict(cls, data: object) -> Budget:
        """The inverse of :meth:`to_dict`."""
        if not isinstance(data, Mapping):
            raise TstarError(f"budget must be a table of numbers, got {data!r}.")
        missing = [name for name in _NUMBERS[:-1] if name not in data]
        if missing:
            raise TstarError(f"A budget needs {', '.join(missing)}; got {sorted(data)}.")
        known = (*_NUMBERS, *_LATER, "fitted")
        strange = sorted(set(data) - set(known))
        if strange:
            raise unknown("field of a budget", strange[0], known)
        numbers = {name: data[name] for name in (*_NUMBERS, *_LATER) if name in data}
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
    """T of the law, or the highest T that a bound allows, and how it reads with its numbers in place."""
    spent, sgd = training.spent, training.family == "sgd"
    if b.power is None and sgd:
        T = b.sgd * math.sqrt(spent * M / K)
        return T, f"c·sqrt(lr·steps·M/K) = {b.sgd:g}·sqrt({spent:.4g}·{M:g}/{K:g})"
    if b.power is None:
        return b.adam * spent * M, f"a·lr·steps·M = {b.adam:g}·{spent:.4g}·{M:g}"
    if not sgd and training.scenario == "finetune" and b.adam_finetune is not None:
        return b.adam_finetune, "the T of Adam and AdamW in fine-tuning"
    if not sgd:
        return b.adam, "the T of Adam and AdamW"
    assert training.lr is not None
    assert training.steps is not None
    batch = BATCH if training.batch_size is None else training.batch_size
    rest = training.rest
    T = b.sgd * math.sqrt(training.lr * M) * (training.steps / (K * batch * rest)) ** b.power
    numbers = f"{b.sgd:g}·sqrt({training.lr:g}·{M:g})·({training.steps:g}/({K:g}·{batch:g}·{rest:.3g}))^{b.power:g}"
    return T, f"c·sqrt(lr·M)·(steps/(K·B·(1 − μ)))^p = {numbers}"


def within(b: Budget, limit: float, T: float) -> float:
    """The law's T, or the lower of T* and a bound; but nothing that was not tried."""
    return b.clip(limit) if b.is_law else max(min(T, limit), min(T, b.minimum))
