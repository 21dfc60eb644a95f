"""Laws of the best temperature with free coefficients: fitted on some data sets, judged on the others.

A law maps what is known before training to a T. Its coefficients are those at which the mean
validation accuracy of the conditions is highest, so a flat plateau counts for little and a cliff for
much; an average over resampled data sets makes them steady. It is judged by leaving out one data set at a time, never on data that it was fitted on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError, require
from tstar.evidence.cases import Array, Case
from tstar.evidence.regret import Rule

ADAM_FAMILY = ("adam", "adamw")
RESAMPLES = 15


class Facts(NamedTuple):
    """What is known of each condition before training, one array a quantity."""

    M: Array
    K: Array
    csg: Array  # NaN where it is not known, or 0
    lr: Array
    steps: Array
    adam: NDArray[np.bool_]

    @classmethod
    def of(cls, many: Sequence[Mapping[str, Any]]) -> Facts:
        def column(name: str) -> Array:
            values = [facts.get(name) for facts in many]
            return np.array([np.nan if v is None else float(v) for v in values])

        csg = column("csg")
        return cls(
            M=column("num_features"),
            K=column("num_classes"),
            csg=np.where(csg > 0, csg, np.nan),
            lr=column("lr"),
            steps=column("steps"),
            adam=np.array([facts["optimizer"] in ADAM_FAMILY for facts in many]),
        )


@dataclass(frozen=True)
class Law:
    """T as a function of coefficients and facts; ``bounds`` is the box that the coefficients lie in."""

    name: str
    says: str
    bounds: tuple[tuple[float, float], ...]
    temperature: Callable[[Sequence[float], Facts], Array]


def data_sets(facts: Mapping[str, Any]) -> frozenset[str]:
    """The data that a condition's samples come from, whatever their size: ``a_32+b_96`` → {a, b}."""
    return frozenset(part.partition("_")[0] for part in str(facts["dataset"]).split("+"))


def fit_law(law: Law, found: Sequence[Case], seed: int = 0) -> tuple[float, ...]:
    """The coefficients with the highest mean validation accuracy, averaged over resampled data sets.

    On plateaus of accuracy the single best coefficients are an accident of noise. So the data sets
    are drawn with replacement :data:`RESAMPLES` times, and the median of the best coefficients is kept.
    """
    if not found:
        raise TstarError(f"Conditions to fit the law {law.name!r} on must be there, got none.")
    if not law.bounds:
        return ()
    sets = sorted({data_sets(case.facts) for case in found}, key=sorted)
    members = [[i for i, c in enumerate(found) if data_sets(c.facts) == own] for own in sets]
    rng = np.random.default_rng(seed)
    best = []
    for _ in range(RESAMPLES):
        counts = np.zeros(len(found))
        for place in rng.integers(len(sets), size=len(sets)):
            counts[members[place]] += 1
        best.append(_highest(law, found, counts, seed))
    return tuple(float(value) for value in np.median(best, axis=0))


def _highest(law: Law, found: Sequence[Case], counts: Array, seed: int) -> Array:
    """The coefficients with the highest weighted mean validation accuracy."""
    optimize = require("scipy.optimize", "fit")
    facts = Facts.of([case.facts for case in found])
    curves = [(np.log(case.temperatures), case.val.mean(axis=0)) for case in found]

    def loss(theta: Array) -> Array:  # (coefficients, candidates) → (candidates,)
        wanted = np.log(law.temperature(theta[:, :, None], facts))  # type: ignore[arg-type]
        total = np.zeros(theta.shape[1])
        for i in np.flatnonzero(counts):
            total -= counts[i] * np.interp(wanted[:, i], *curves[i])
        return total

    result = optimize.differential_evolution(
        loss, law.bounds, seed=seed, popsize=12, maxiter=60, tol=1e-6, polish=False,
        vectorized=True, updating="deferred",
    )  # fmt: skip
    best: Array = result.x
    return best


def leave_one_out(
    law: Law, found: Sequence[Case], seed: int = 0
) -> dict[frozenset[str], tuple[float, ...]]:
    """For the data of every condition, coefficients fitted on conditions that share none of them."""
    held = sorted({data_sets(case.facts) for case in found}, key=sorted)
    return {
        own: fit_law(law, [case for case in found if not data_sets(case.facts) & own], seed)
        for own in held
    }


def left_out_rule(law: Law, thetas: Mapping[frozenset[str], Sequence[float]]) -> Rule:
    """The law as a rule for :func:`tstar.evidence.scores`, each data set judged by a fit without it."""

    def temperature(facts: Mapping[str, Any]) -> float:
        return float(law.temperature(thetas[data_sets(facts)], Facts.of([facts]))[0])

    return temperature
