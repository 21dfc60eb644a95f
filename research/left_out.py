"""The paper's form with coefficients of ours, each data set judged by a fit that has not seen it.

The coefficients are those at which the mean validation accuracy of the conditions is highest, so a flat plateau counts
for little and a cliff for much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from tstar.lab.curves import Curve
from tstar.lab.curves.resampling import data_sets

Array = NDArray[np.float64]
Form = Callable[[Any, Array, Array], Array]
# Each form with the box that its coefficients lie in; T is linear in them.
OWN: dict[str, tuple[Form, list[tuple[float, float]]]] = {
    "own base": (lambda c, M, K: c[0] * np.sqrt(M) + c[1], [(-1.0, 2.0), (-8.0, 12.0)]),
    "own cn": (
        lambda c, M, K: c[0] * np.sqrt(M) + c[1] + c[2] * np.log(K),
        [(-1.0, 2.0), (-8.0, 24.0), (-6.0, 2.0)],
    ),
}


def _temperature(name: str, theta: Any, facts: Sequence[Mapping[str, Any]]) -> Array:
    M, K = (np.array([float(f[key]) for f in facts]) for key in ("num_features", "num_classes"))
    clipped: Array = np.clip(OWN[name][0](theta, M, K), 1.0, 512.0)
    return clipped


def fitted(name: str, found: Sequence[Curve], seed: int = 0) -> Array:
    """The coefficients with the highest mean validation accuracy over the conditions."""
    facts = [case.facts for case in found]
    curves = [(np.log(c.temperatures), c.means("val")) for c in (case.matched() for case in found)]

    def loss(theta: Array) -> Array:  # (coefficients, candidates) → (candidates,)
        wanted = np.log(_temperature(name, theta[:, :, None], facts))
        return -sum(np.interp(wanted[:, i], *curve) for i, curve in enumerate(curves))  # type: ignore[return-value]

    result = optimize.differential_evolution(
        loss, OWN[name][1], seed=seed, popsize=20, maxiter=200, tol=1e-8, polish=False,
        vectorized=True, updating="deferred",
    )  # fmt: skip
    best: Array = result.x
    return best


def left_out_rule(name: str, found: Sequence[Curve]) -> Callable[[Mapping[str, Any]], float]:
    """T of a condition, by a fit on the conditions that share no data with it."""
    thetas = {
        own: fitted(name, [case for case in found if not data_sets(case.facts) & own])
        for own in {data_sets(case.facts) for case in found}
    }
    return lambda facts: float(_temperature(name, thetas[data_sets(facts)], [facts])[0])
