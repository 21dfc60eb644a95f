"""In which directions the coefficients may move together without costing accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tstar.fitting.model import Problem

Array = NDArray[np.float64]
TOLERANCE = 1e-3  # a tenth of a percentage point of mean accuracy
_STEPS = 2000


@dataclass(frozen=True)
class Flat:
    """A line through the fitted coefficients on which the mean regret rises by less than a tolerance.

    Attributes:
        names: the coefficients.
        direction: unit vector of the line.
        low, high: the coefficients at its two ends.
        temperature_change: root-mean-square change of T over the conditions from end to end.
        open_ended: whether an end lies on the bounds of the search rather than at the tolerance.
    """

    names: tuple[str, ...]
    direction: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    temperature_change: float
    open_ended: bool

    @property
    def unidentified(self) -> tuple[str, ...]:
        """The coefficients that a line to the bound of the search leaves open; none on a short line."""
        share = np.abs(self.direction)
        return (
            tuple(n for n, x in zip(self.names, share, strict=True) if x > 0.05)
            if self.open_ended
            else ()
        )

    def points(self) -> list[tuple[float, ...]]:
        """Five sets of coefficients along the line, ends included."""
        return [tuple(map(float, row)) for row in np.linspace(self.low, self.high, 5)]

    def __str__(self) -> str:
        ranges = ", ".join(
            f"{name} {a:.3g} … {b:.3g}"
            for name, a, b in zip(self.names, self.low, self.high, strict=True)
        )
        end = " (an end is the bound of the search)" if self.open_ended else ""
        return f"{ranges}; T moves by {self.temperature_change:.2g} on average{end}"


def flat_directions(problem: Problem, theta: Array, bounds: Array) -> tuple[Flat, ...]:
    """One line per coefficient, flattest first: the right singular vectors of the design matrix.

    The loss is piecewise linear, so it has no Hessian to take eigenvectors of; but θ acts through
    T = Xθ alone, and the singular vectors of X order the directions by how much they move T.
    """
    return tuple(walk(problem, theta, vector, bounds, TOLERANCE) for vector in directions(problem))


def directions(problem: Problem) -> Array:
    """Right singular vectors of the design matrix, those that move T least first, (p, p)."""
    _, _, vectors = np.linalg.svd(problem.design * np.sqrt(problem.weights)[:, None])
    found: Array = vectors[::-1]
    return found


def walk(problem: Problem, theta: Array, direction: Array, bounds: Array, tolerance: float) -> Flat:
    """Both ways along a direction until the loss has risen by the tolerance or a bound is met."""
    direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
    limit = problem.loss(theta) + tolerance
    ends, open_ended = [], False
    for way in (-1.0, 1.0):
        step = way * direction
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step > 0, bounds[:, 1] - theta, bounds[:, 0] - theta) / step
        reach = float(np.min(room[np.abs(step) > 1e-12]))
        # Steps that grow geometrically: the flat stretch may be a thousandth of the box or all of it.
        lengths = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, _STEPS) * max(reach, 0.0)])
        inside = problem.loss(theta + lengths[:, None] * step) <= limit
        last = len(lengths) - 1 if inside.all() else int(np.argmin(inside)) - 1
        # A fit that lies on a bound has not walked there.
        open_ended |= bool(inside.all()) and reach > 1e-3
        ends.append(theta + lengths[max(last, 0)] * step)
    moved = problem.temperatures(ends[1]) - problem.temperatures(ends[0])
    return Flat(
        names=problem.names,
        direction=tuple(float(x) for x in direction),
        low=tuple(float(x) for x in ends[0]),
        high=tuple(float(x) for x in ends[1]),
        temperature_change=float(np.sqrt(np.average(moved**2, weights=problem.weights))),
        open_ended=open_ended,
    )
