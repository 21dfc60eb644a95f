"""Laws of the best temperature with free coefficients: fitted on some data sets, judged on the others.

A law maps what is known before training to a T. Its coefficients are those at which the mean
validation accuracy of the conditions is highest, so a flat plateau counts for little and a cliff for
much. It is judged by leaving out one data set at a time, never on data that it was fitted on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tstar.curves import Curve
from tstar.curves.resampling import data_sets
from tstar.errors import TstarError, require
from tstar.evidence.regret import Rule
from tstar.formula.training import family

Array = NDArray[np.float64]


class Facts(NamedTuple):
    """What is known of each condition before training, one array per quantity."""

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
            adam=np.array([family(str(facts["optimizer"])) == "adam" for facts in many]),
        )


@dataclass(frozen=True)
class Law:
    """T as a function of coefficients and facts; ``bounds`` is the box that the coefficients lie in."""

    name: str
    says: str
    bounds: tuple[tuple[float, float], ...]
    temperature: Callable[[Sequence[float], Facts], Array]


def fit_law(law: Law, found: Sequence[Curve], seed: int = 0) -> tuple[float, ...]:
    """The coefficients with the highest mean validation accuracy over the conditions."""
    if not found:
        raise TstarError(f"There are no conditions to fit the law {law.name!r} on.")
    if not law.bounds:
        return ()
    optimize = require("scipy.optimize", "fit")
    facts = Facts.of([case.facts for case in found])
    curves = [(np.log(c.temperatures), c.means("val")) for c in (case.matched() for case in found)]

    def loss(theta: Array) -> Array:  # (coefficients, candidates) → (candidates,)
        wanted = np.log(law.temperature(theta[:, :, None], facts))  # type: ignore[arg-type]
        total = np.zeros(theta.shape[1])
        for i, (grid, accuracy) in enumerate(curves):
            total -= np.interp(wanted[:, i], grid, accuracy)
        return total

    result = optimize.differential_evolution(
        loss, law.bounds, seed=seed, popsize=20, maxiter=200, tol=1e-8, polish=False,
        vectorized=True, updating="deferred",
    )  # fmt: skip
    return tuple(float(value) for value in result.x)


def leave_one_out(
    law: Law, found: Sequence[Curve], seed: int = 0
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
