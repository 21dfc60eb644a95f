"""The candidate laws for a temperature that knows how you train, each with its reason.

What the theory says. Dividing logits by T is a head with init/T and, for SGD, a learning rate of
lr/T²; its inputs are batch-normed, ‖h‖² ≈ M, and one sample in K is of a given class. One step moves
a logit by about lr·M/T² of its gradient (Adam: by about lr·M/T, whatever the gradient), so

- too cold: a step of SGD must not overshoot, which bounds T from below by f·sqrt(lr·M);
- too hot: over a run the logits of a class can move by about lr·steps·M/(T²·K) (Adam: lr·steps·M/T),
  which must be enough to fit it, and bounds T from above by c·sqrt(lr·steps·M/K) (Adam: a·lr·steps·M).

Above that T the head is still moving when training ends: the cliff. The paper's T*, fitted where
lr·steps is large, knows neither bound. The candidates differ in which powers they take from theory
and which from the runs, and in how they join the paper's T*.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from research.laws.fitting import Array, Facts, Law
from tstar.formula.arrays import temperatures
from tstar.formula.coefficients import get

LOWEST, HIGHEST = 0.25, 512.0  # the ends of what has been tried, and of the paper's clip

_C, _A = (-4.0, 2.0), (-9.0, 1.0)  # ln c, ln a
_F = (-3.0, 1.0)  # ln f
_POWER = (0.0, 1.5)
_FREE = ((-10.0, 4.0), _POWER, _POWER, (-0.5, 1.5))


def clipped(T: Array, lowest: float = LOWEST) -> Array:
    bounded: Array = np.clip(T, lowest, HIGHEST)
    return bounded


def paper(variant: str, f: Facts) -> Array:
    """The paper's T* of every condition; where csg is not known, with the class count alone."""
    if variant == "csgcn":
        return np.where(np.isfinite(f.csg), _sum("csgcn", f), _sum("cn", f))
    return _sum(variant, f)


def _sum(variant: str, f: Facts) -> Array:
    return temperatures(get(variant), f.M, f.K, f.csg)


def limit(theta: Sequence[float], f: Facts) -> Array:
    """c·sqrt(lr·steps·M/K) for SGD, a·lr·steps·M for Adam: too hot above."""
    spent = f.lr * f.steps * f.M
    T: Array = np.where(f.adam, np.exp(theta[1]) * spent, np.exp(theta[0]) * np.sqrt(spent / f.K))
    return T


def floor(theta: Sequence[float], f: Facts) -> Array:
    """f·sqrt(lr·M) for SGD: too cold below."""
    T: Array = np.where(f.adam, LOWEST, np.exp(theta[0]) * np.sqrt(f.lr * f.M))
    return T


def _powers(theta: Sequence[float], f: Facts) -> Array:
    """exp(θ₀)·(lr·steps)^θ₁·M^θ₂·K^−θ₃."""
    lnT = theta[0] + theta[1] * np.log(f.lr * f.steps) + theta[2] * np.log(f.M)
    T: Array = np.exp(lnT - theta[3] * np.log(f.K))
    return T


def _all_powers(theta: Sequence[float], f: Facts) -> Array:
    T: Array = np.where(f.adam, _powers(theta[4:], f), _powers(theta[:4], f))
    return T


def _one_power(theta: Sequence[float], f: Facts) -> Array:
    spent = f.lr * f.steps * f.M
    T: Array = np.exp(np.where(f.adam, theta[1], theta[0])) * np.where(
        f.adam, spent ** theta[3], (spent / f.K) ** theta[2]
    )
    return T


def _rescaled(variant: str) -> Law:
    return Law(
        f"{variant}·sqrt(lr/0.1)",
        f"the paper's {variant}, rescaled with the learning rate; nothing is fitted",
        (),
        lambda theta, f: clipped(paper(variant, f) * np.sqrt(f.lr / 0.1)),
    )


def _limited(variant: str) -> Law:
    return Law(
        f"min({variant}, limit)",
        f"the paper's {variant}, but no hotter than the run allows",
        (_C, _A),
        lambda theta, f: clipped(np.minimum(paper(variant, f), limit(theta, f))),
    )


def _bounded(variant: str) -> Law:
    return Law(
        f"max(floor, min({variant}, limit))",
        f"the paper's {variant}, neither hotter than the run nor colder than a step allows",
        (_C, _A, _F),
        lambda theta, f: clipped(
            np.maximum(floor(theta[2:], f), np.minimum(paper(variant, f), limit(theta, f)))
        ),
    )


LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        *(_rescaled(variant) for variant in ("base", "cn", "csgcn")),
        Law("limit", "as hot as the run allows, whatever the paper says", (_C, _A),
            lambda theta, f: clipped(limit(theta, f))),
        *(_limited(variant) for variant in ("base", "cn", "csgcn")),
        Law("max(1, min(cn, limit))", "never below T = 1", (_C, _A),
            lambda theta, f: clipped(np.minimum(paper("cn", f), limit(theta, f)), 1.0)),
        Law("max(floor, limit)", "between what a step and what the run allows, without the paper",
            (_C, _A, _F),
            lambda theta, f: clipped(np.maximum(floor(theta[2:], f), limit(theta, f)))),
        *(_bounded(variant) for variant in ("base", "cn", "csgcn")),
        Law("max(floor, soft min(cn, limit))", "as with min, without its corner", (_C, _A, _F),
            lambda theta, f: clipped(np.maximum(
                floor(theta[2:], f), (paper("cn", f) ** -2 + limit(theta, f) ** -2) ** -0.5))),
        Law("one power", "the limit to a power that is fitted, one a family", (_C, _A, _POWER, _POWER),
            lambda theta, f: clipped(_one_power(theta, f))),
        Law("all powers", "every power fitted, by family", (*_FREE, *_FREE),
            lambda theta, f: clipped(_all_powers(theta, f))),
        Law("min(cn, all powers)", "every power fitted, under the paper's cn", (*_FREE, *_FREE),
            lambda theta, f: clipped(np.minimum(paper("cn", f), _all_powers(theta, f)))),
    )
}  # fmt: skip
