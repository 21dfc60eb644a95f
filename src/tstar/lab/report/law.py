"""The law's T for a condition: one door to the core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tstar.errors import TstarError
from tstar.formula import Coefficients, temperature
from tstar.law import law_temperature
from tstar.training import MOMENTUM, Training

# lr·steps of the trainings that the law was measured on: the second atlas (results/atlas2).
_MEASURED = {"sgd": (0.046, 1096.0), "adam": (0.0112, 16.4)}


def law(facts: Mapping[str, Any]) -> float | None:
    """tstar's T at the run's own rate; ``None`` if the law was not measured on such a training.

    It was measured with cross-entropy, SGD and Adam's family, over a range of lr·steps. It is not
    all that ``tstar.recommend`` says, which may advise another rate, or to leave the model.
    """
    M, K = (number(facts.get(name)) for name in ("num_features", "num_classes"))
    how = {name: number(facts.get(name)) for name in ("lr", "steps", "momentum", "batch_size")}
    usual = facts.get("loss") in (None, "cross-entropy")
    if None in (M, K, how["lr"], how["steps"]) or not usual:
        return None
    optimizer, scenario = str(facts.get("optimizer") or ""), str(facts.get("scenario") or "scratch")
    try:
        training = Training(optimizer, scenario=scenario, **how)  # type: ignore[arg-type]
        low, high = _MEASURED.get(training.family or "", (1.0, 0.0))
        momentum = MOMENTUM if training.momentum is None else training.momentum
        longer = (1 - MOMENTUM) / (1 - momentum) if training.family == "sgd" else 1.0
        if not low <= (training.lr or 0) * (training.steps or 0) * longer <= high:
            return None
        T: float = law_temperature(int(M or 1), int(K or 2), training)
    except TstarError:  # an optimizer that nobody knows
        return None
    # Fine-tuning with SGD below T = 1 is never advised.
    return max(T, 1.0) if training.family == "sgd" and scenario == "finetune" else T


def of_paper(facts: Mapping[str, Any], chosen: Coefficients) -> float | None:
    """T* by the paper's formula with these coefficients; ``None`` if a fact is missing."""
    M, K, csg = (number(facts.get(name)) for name in ("num_features", "num_classes", "csg"))
    try:
        whole = None if K is None else int(K)
        return temperature(int(M or 0), whole, csg or None, coefficients=chosen)
    except TstarError:
        return None


def number(value: Any) -> float | None:
    """A number, or ``None`` if it is missing."""
    return None if value is None or value != value else float(value)
