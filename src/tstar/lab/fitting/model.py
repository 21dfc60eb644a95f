"""T = clip(Xθ, 1, 512) and the loss of θ, for a whole population of candidates at once.

Steps (ii) and (iii) of the paper: the temperature of each condition from the coefficients
θ = (α, β, γ, δ), and the sum of the interpolated accuracies, to be maximized. We minimize
the mean regret instead, mean_c(best_c − accuracy_c(T_c)): it has the same argument, and an
optimizer's relative tolerance means something near its minimum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError, unknown
from tstar.formula import VARIANTS, choose_variant, get
from tstar.lab.curves.conditions import Curve, listed
from tstar.lab.curves.lines import Lines

Array = NDArray[np.float64]
MINIMUM, MAXIMUM = 1.0, 512.0
# The bounds of the search. The paper gives none.
BOUNDS = {
    "alpha": (0.0, 10.0),
    "beta": (-100.0, 100.0),
    "gamma": (-20.0, 20.0),
    "delta": (-20.0, 20.0),
}
_INPUT = {"alpha": "num_features", "gamma": "csg", "delta": "num_classes"}


@dataclass(frozen=True)
class Problem:
    """What the optimizer sees: curves of n conditions and the design matrix X (n, p)."""

    curves: Lines
    design: Array
    names: tuple[str, ...]

    @property
    def bounds(self) -> Array:
        """The lowest and the highest coefficients of the search, (2, p)."""
        found: Array = np.array([BOUNDS[name] for name in self.names]).T
        return found

    @property
    def published(self) -> Array:
        """The paper's coefficients of the same variant, (p,)."""
        paper = get(choose_variant("delta" in self.names, "gamma" in self.names))
        return np.array([getattr(paper, name) for name in self.names], dtype=float)

    def without(self, name: str) -> Problem:
        """The special case in which a coefficient is 0."""
        column = self.names.index(name)
        names = tuple(n for n in self.names if n != name)
        return replace(self, design=np.delete(self.design, column, axis=1), names=names)

    def temperatures(self, theta: Array) -> Array:
        """clip(Xθ, 1, 512): shape (…, p) → (…, n)."""
        clipped: Array = np.clip(theta @ self.design.T, MINIMUM, MAXIMUM)
        return clipped

    def regret(self, theta: Array) -> Array:
        """Regret to the best grid temperature, condition by condition: (…, p) → (…, n)."""
        return self.curves.best - self.curves(self.temperatures(theta))

    def loss(self, theta: Array) -> Array:
        """Mean regret, one condition one vote: shape (…, p) → (…)."""
        mean: Array = self.regret(theta).mean(axis=-1)
        return mean


def coefficient_names(variant: str) -> tuple[str, ...]:
    """Which coefficients a variant has."""
    if variant not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    return ("alpha", "beta", *["gamma"] * ("csg" in variant), *["delta"] * ("cn" in variant))


def problem(
    conditions: Sequence[Curve], curves: Lines, variant: str, *, check: bool = True
) -> Problem:
    """The optimization problem of these conditions: α·sqrt(M) + β + γ·ln csg + δ·ln K.

    ``check`` refuses conditions that cannot tell the coefficients apart: to fit, not to evaluate.
    """
    names = coefficient_names(variant)
    inputs = {name: _quantity(conditions, _INPUT[name]) for name in names if name in _INPUT}
    columns = {name: np.log(values) for name, values in inputs.items()}
    columns |= {"alpha": np.sqrt(inputs["alpha"]), "beta": np.ones(len(conditions))}
    design = np.stack([columns[name] for name in names], axis=1)
    if check and not tells_apart(design):
        fixed = [
            f"{_INPUT[name]} is {values[0]:g} in all"
            for name, values in inputs.items()
            if len(np.unique(values)) == 1
        ]
        reason = "; ".join(fixed) or "their inputs are linear combinations of each other"
        raise TstarError(
            f"{', '.join(names)} cannot be separated with {len(design)} condition(s): "
            f"{reason}; add runs that differ in it, or choose a simpler variant."
        )
    return Problem(curves, design, names)


def tells_apart(design: Array) -> bool:
    """Whether the rows of a design matrix determine every coefficient, whatever its unit."""
    scaled = design / np.linalg.norm(design, axis=0)
    return bool(np.linalg.matrix_rank(scaled, tol=1e-6) == design.shape[1])


def _quantity(conditions: Sequence[Curve], name: str) -> Array:
    """The column of M, csg or K, or an error that lists the conditions without it."""
    bad = [c for c in conditions if not 0 < (c.facts.get(name) or 0) < math.inf]
    if bad:
        raise TstarError(
            f"{name} > 0 must be known in every condition, but is not in {len(bad)} of "
            f"{len(conditions)}; add it to the runs, or choose a variant that does without it:\n"
            + listed(bad)
        )
    return np.array([c.facts[name] for c in conditions], dtype=float)
