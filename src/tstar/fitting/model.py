"""T = clip(Xθ, ε, 512) and the loss of θ, for a whole population of candidates at once.

Step (ii) and (iii) of the paper: the temperature of each condition from the coefficients
θ = (α, β[, γ][, δ]), and the sum of the interpolated accuracies, to be maximized. We minimize the
mean regret instead, mean_c(best_c − accuracy_c(T_c)): it has the same argument, and differential
evolution's relative tolerance means something near its minimum, while 1 % of an accuracy of 0.8 is
reached by the first random population.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tstar.curves.conditions import Curve, listed
from tstar.curves.lines import Lines
from tstar.errors import TstarError, unknown
from tstar.formula.arrays import column
from tstar.formula.choice import variant_name
from tstar.formula.coefficients import VARIANTS
from tstar.numbers import number

Array = NDArray[np.float64]
# The bounds of the search. The paper gives none.
BOUNDS = {
    "alpha": (0.0, 10.0),
    "beta": (-100.0, 100.0),
    "gamma": (-20.0, 20.0),
    "delta": (-20.0, 20.0),
}
# Exponents of the power form; its β is the logarithm of a temperature.
POWER_BOUNDS = {
    "alpha": (-2.0, 2.0),
    "beta": (-10.0, 10.0),
    "gamma": (-3.0, 3.0),
    "delta": (-3.0, 3.0),
}
Form = Literal["sum", "power"]
_INPUT = {"alpha": "num_features", "gamma": "csg", "delta": "num_classes"}


@dataclass(frozen=True)
class Problem:
    """What the optimizer sees: curves, design matrix X (n, p), bounds of the clip, weights (n,).

    ``form`` is ``"sum"``, the paper's T = Xθ, or ``"power"``, the alternative ln T = Xθ with ln M in
    place of sqrt(M): a product of powers of M, csg and K.
    """

    curves: Lines
    design: Array
    names: tuple[str, ...]
    minimum: float
    maximum: float
    weights: Array
    form: Form = "sum"

    def temperatures(self, theta: Array) -> Array:
        """clip(Xθ, minimum, maximum): shape (…, p) → (…, n)."""
        linear = theta @ self.design.T
        if self.form == "power":
            linear = np.exp(np.minimum(linear, math.log(self.maximum)))
        clipped: Array = np.clip(linear, self.minimum, self.maximum)
        return clipped

    def regret(self, theta: Array) -> Array:
        """Regret to the best grid temperature, condition by condition: shape (…, p) → (…, n)."""
        return self.curves.best - self.curves(self.temperatures(theta))

    def loss(self, theta: Array) -> Array:
        """Weighted mean regret: shape (…, p) → (…)."""
        mean: Array = self.regret(theta) @ self.weights
        return mean

    def columns(self, theta: Array) -> Array:
        """:meth:`loss` in the layout of SciPy's vectorized solvers: (p, S) → (S,), (p,) → ()."""
        return self.loss(theta.T)


def coefficient_names(variant: str) -> tuple[str, ...]:
    """Which coefficients a variant has; ``"none"`` is the old word for ``"base"``."""
    name = variant_name(variant)
    if name not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    return ("alpha", "beta", *["gamma"] * ("csg" in name), *["delta"] * ("cn" in name))


def design_matrix(
    conditions: Sequence[Curve],
    names: Sequence[str],
    form: Form = "sum",
    *,
    check: bool = True,
) -> Array:
    """X with the columns sqrt(M), 1, ln csg, ln K that ``names`` asks for (power form: ln M).

    ``check`` refuses a matrix that cannot tell the coefficients apart: to fit, not to evaluate.
    """
    columns = []
    for name in names:
        if name == "beta":
            columns.append(np.ones(len(conditions)))
            continue
        values = _quantity(conditions, _INPUT[name])
        columns.append(column(name, values) if form == "sum" else np.log(values))
    matrix = np.stack(columns, axis=1)
    if check:
        _require_rank(matrix, conditions, names)
    return matrix


def problem(
    conditions: Sequence[Curve],
    curves: Lines,
    variant: str,
    *,
    minimum: float = 1.0,
    maximum: float = 512.0,
    weights: Array | None = None,
    form: Form = "sum",
    check: bool = True,
) -> Problem:
    """The optimization problem of these conditions; equal weights unless given."""
    minimum, maximum = number("minimum", minimum), number("maximum", maximum)
    if not 0 < minimum <= maximum:
        raise TstarError(
            f"0 < minimum <= maximum must hold, got minimum={minimum}, maximum={maximum}."
        )
    names = coefficient_names(variant)
    n = len(conditions)
    share = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    return Problem(
        curves=curves,
        design=design_matrix(conditions, names, form, check=check),
        names=names,
        minimum=minimum,
        maximum=maximum,
        weights=share,
        form=form,
    )


def _quantity(conditions: Sequence[Curve], name: str) -> Array:
    """The column of M, csg or K, or an error that lists the conditions without it."""
    missing = [c for c in conditions if c.facts.get(name) is None]
    if missing:
        way_out = "" if name == "num_features" else ", or choose a variant that does without it"
        raise TstarError(
            f"{name} must be known in every condition, missing in {len(missing)} of "
            f"{len(conditions)}; add it to the runs{way_out}:\n{listed(missing)}"
        )
    values = np.array([float(c.facts[name]) for c in conditions])
    bad = [c for c, value in zip(conditions, values, strict=True) if not 0 < value < math.inf]
    if bad:
        raise TstarError(
            f"{name} > 0 must hold in every condition; fix or remove these:\n{listed(bad)}"
        )
    return values


def _require_rank(matrix: Array, conditions: Sequence[Curve], names: Sequence[str]) -> None:
    """Coefficients whose inputs do not vary on their own cannot be told apart: say which."""
    scaled = matrix / np.linalg.norm(matrix, axis=0)
    if np.linalg.matrix_rank(scaled, tol=1e-6) == len(names):
        return
    fixed = [
        f"{_INPUT[name]} is {values[0]:g} in all"
        for name in names
        if name in _INPUT and len(values := np.unique(_quantity(conditions, _INPUT[name]))) == 1
    ]
    reason = "; ".join(fixed) or "their inputs are linear combinations of each other"
    raise TstarError(
        f"{', '.join(names)} must be told apart by the {len(conditions)} condition(s), but {reason}; add runs "
        "that differ in it, or choose a simpler variant."
    )
