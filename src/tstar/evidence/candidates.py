"""The candidate laws for a temperature that knows how you train, each with its reason.

What the theory says. Dividing logits by T is a head with init/T and, for SGD, a learning rate of
lr/T²; its inputs are batch-normed, ‖h‖² ≈ M, and one sample in K is of a given class. So in a run the
logits of a class can move by about

    SGD    lr·steps·M/(T²·K)      and this is at least some constant up to  T = c·sqrt(lr·steps·M/K)
    Adam   lr·steps·M/T           (a step moves every weight by about lr)   T = a·lr·steps·M

Above that T the head is still moving when training ends: the cliff. The paper's T*, fitted where lr·steps is
large, knows no such bound. The candidates differ in which powers they take from theory and
which from the runs, and in how they join the paper's T*.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tstar.coefficients import get
from tstar.evidence.cases import Array
from tstar.evidence.laws import Facts, Law

LOWEST, HIGHEST = 0.25, 512.0  # the ends of what has been tried, and of the paper's clip

_SGD = (-4.0, 2.0)  # ln c
_ADAM = (-9.0, 1.0)  # ln a
_POWER = (0.0, 1.5)


def clipped(T: Array, lowest: float = LOWEST) -> Array:
    bounded: Array = np.clip(T, lowest, HIGHEST)
    return bounded


def paper(variant: str, f: Facts) -> Array:
    """The paper's T* of every condition; where csg is not known, with the class count alone."""
    if variant == "csgcn":
        known = np.isfinite(f.csg)
        return np.where(known, _sum("csgcn", f), _sum("cn", f))
    return _sum(variant, f)


def _sum(variant: str, f: Facts) -> Array:
    c = get(variant)
    T: Array = c.alpha * np.sqrt(f.M) + c.beta + (c.delta or 0.0) * np.log(f.K)
    if c.gamma is not None:
        T = T + c.gamma * np.log(f.csg)
    bounded: Array = np.clip(T, c.minimum, c.maximum)
    return bounded


def budget(theta: Sequence[float], f: Facts) -> Array:
    """c·sqrt(lr·steps·M/K) for SGD, a·lr·steps·M for Adam: the cliff's T by theory."""
    spent = f.lr * f.steps * f.M
    c, a = np.exp(theta[0]), np.exp(theta[1])
    T: Array = np.where(f.adam, a * spent, c * np.sqrt(spent / f.K))
    return T


def _limited(variant: str) -> Law:
    return Law(
        f"min({variant}, budget)",
        f"the paper's {variant}, but never hotter than the budget allows",
        (_SGD, _ADAM),
        lambda theta, f: clipped(np.minimum(paper(variant, f), budget(theta, f))),
    )


def _rescaled(variant: str) -> Law:
    return Law(
        f"{variant}·sqrt(lr/0.1)",
        f"the paper's {variant}, rescaled with the learning rate; nothing is fitted",
        (),
        lambda theta, f: clipped(paper(variant, f) * np.sqrt(f.lr / 0.1)),
    )


def _powers(theta: Sequence[float], f: Facts) -> Array:
    """exp(θ₀)·(lr·steps)^θ₁·M^θ₂·K^−θ₃."""
    lnT = theta[0] + theta[1] * np.log(f.lr * f.steps) + theta[2] * np.log(f.M)
    return np.exp(lnT - theta[3] * np.log(f.K))


_FREE = ((-10.0, 4.0), _POWER, _POWER, (-0.5, 1.5))

LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        *(_rescaled(variant) for variant in ("base", "cn", "csgcn")),
        Law("budget", "the cliff alone, powers from theory", (_SGD, _ADAM),
            lambda theta, f: clipped(budget(theta, f))),
        *(_limited(variant) for variant in ("base", "cn", "csgcn")),
        Law("soft min(cn, budget)", "as min, without its corner", (_SGD, _ADAM),
            lambda theta, f: clipped((paper("cn", f) ** -2 + budget(theta, f) ** -2) ** -0.5)),
        Law("budget, capped", "the cliff alone, under a constant that is fitted", (_SGD, _ADAM, (0.0, 4.0)),
            lambda theta, f: clipped(np.minimum(budget(theta, f), np.exp(theta[2])))),
        Law("budget, Adam by sqrt", "the same power for both families", (_SGD, (-9.0, 4.0)),
            lambda theta, f: clipped(np.exp(np.where(f.adam, theta[1], theta[0]))
                                     * np.sqrt(f.lr * f.steps * f.M / f.K))),
        Law("one power", "theory's product to a power that is fitted, one a family",
            (_SGD, _ADAM, _POWER, _POWER),
            lambda theta, f: clipped(np.where(
                f.adam, np.exp(theta[1]) * (f.lr * f.steps * f.M) ** theta[3],
                np.exp(theta[0]) * (f.lr * f.steps * f.M / f.K) ** theta[2]))),
        Law("all powers", "every power fitted, by family", (*_FREE, *_FREE),
            lambda theta, f: clipped(np.where(f.adam, _powers(theta[4:], f), _powers(theta[:4], f)))),
        Law("min(cn, all powers)", "every power fitted, under the paper's cn", (*_FREE, *_FREE),
            lambda theta, f: clipped(np.minimum(paper("cn", f), np.where(
                f.adam, _powers(theta[4:], f), _powers(theta[:4], f))))),
    )
}  # fmt: skip
