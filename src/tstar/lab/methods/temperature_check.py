"""Temperature check: train at several inverse temperatures, keep the best on validation data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from torch import nn

from tstar.errors import TstarError, whole
from tstar.lab.methods.closed_forms import fixed
from tstar.lab.recipe import Method, Recipe, Setting


def temperature_check(
    model: nn.Module,
    setting: Setting,
    *,
    points: int = 7,
    lowest: float = 1e-2,
    highest: float = 1e1,
) -> Recipe:
    r"""L = CE(β·z, y), β = 1/T fixed in training; the β of best validation accuracy is kept.

    Each of the ``points``, log-spaced over β = ``lowest`` … ``highest``, is a training run,
    which is the method's cost.

    Reference: Agarwala et al. 2020, "Temperature check" (S); spacing and seven points are ours.
    """
    raise TstarError(
        f"Method 'temperature-check' is a search of {points} training runs, not one run; use "
        "tstar.lab.methods.search, or prepare tstar.lab.methods.get('fixed', temperature=T)."
    )


class Trial(NamedTuple):
    """One training run of a search; ``score`` is ``None`` if the run failed."""

    temperature: float
    score: float | None


class Search(NamedTuple):
    """The best trial, and all of them in the order in which they ran."""

    best: Trial
    trials: tuple[Trial, ...]


def search(method: Method, score: Callable[[Method], float | None]) -> Search:
    """Train each candidate of a method and keep the best on validation data.

    If scores are equal the T nearest to 1 (in ln T) wins.

    Args:
        method: ``temperature-check``.
        score: trains the method it is given and returns its **validation** accuracy, or ``None`` if
            the run failed.

    """
    if method.function is not temperature_check:
        raise TstarError(f"Method {method.name!r} does not search; train it as it is.")
    points = whole("points", method.options["points"], least=2)
    low, high = math.log(method.options["lowest"]), math.log(method.options["highest"])
    if low >= high:
        raise TstarError("lowest < highest must hold for β; swap them.")
    trials = []
    for i in range(points):
        T = math.exp(-(low + (high - low) / (points - 1) * i))
        value = score(
            replace(method, name="fixed", function=fixed, options={"temperature": T}, search=None)
        )
        trials.append(Trial(T, value if value is not None and math.isfinite(value) else None))
    done = [trial for trial in trials if trial.score is not None]
    if not done:
        raise TstarError(
            f"At least one run of {method.name!r} must finish, but all {points} failed; lower the "
            "learning rate or narrow the range of β."
        )
    best = max(done, key=lambda t: (t.score or 0.0, -abs(math.log(t.temperature))))
    return Search(best, tuple(trials))
