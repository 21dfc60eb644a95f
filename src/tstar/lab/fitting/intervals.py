"""How sure coefficients are: bootstrap intervals, and directions in which they may move together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tstar.checks import whole
from tstar.errors import TstarError
from tstar.lab.curves.conditions import Curve
from tstar.lab.curves.resampling import redrawn
from tstar.lab.fitting.model import Problem, tells_apart
from tstar.lab.fitting.search import solve

Array = NDArray[np.float64]
_STEPS = 2000


def intervals(
    conditions: Sequence[Curve],
    pose: Callable[[Sequence[Curve]], Problem],
    *,
    replicates: int,
    seed: int,
    level: float = 0.95,
) -> dict[str, tuple[float, float]]:
    """The percentiles of refits to conditions that are drawn again, each with its seeds drawn again.

    Seeds are noise in both steps: if conditions differ by nothing else, an interval is wider than
    it need be. ``pose`` makes the problem of conditions, unchecked.
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
    draws = [_draw(conditions, pose, rng) for _ in range(whole("bootstrap", replicates, least=2))]
    refits = [solve(problem, seed, restarts=1).theta for problem in draws]
    low, high = np.quantile(refits, [(1 - level) / 2, (1 + level) / 2], axis=0).tolist()
    return dict(zip(draws[0].names, zip(low, high, strict=True), strict=True))


def _draw(
    conditions: Sequence[Curve],
    pose: Callable[[Sequence[Curve]], Problem],
    rng: np.random.Generator,
) -> Problem:
    """Runs drawn again, until they can tell the coefficients apart."""
    for _ in range(100):
        problem = pose(redrawn(conditions, rng))
        if tells_apart(problem.design):
            return problem
    n, p = problem.design.shape
    raise TstarError(
        f"The bootstrap over conditions needs more conditions than {n} to tell {p} coefficients "
        "apart; leave the bootstrap out, or add runs."
    )


@dataclass(frozen=True)
class Flat:
    """A line through the fitted coefficients on which the mean regret rises by little.

    ``low`` and ``high`` are the coefficients at its two ends. It is open if an end lies on the
    bounds of the search rather than at the tolerance.
    """

    names: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    open_ended: bool

    @property
    def unidentified(self) -> tuple[str, ...]:
        """The coefficients that a line to the bound of the search leaves open."""
        way = np.abs(np.subtract(self.high, self.low))
        moved = zip(self.names, way > 0.05 * np.linalg.norm(way), strict=True)
        return tuple(name for name, does in moved if does) if self.open_ended else ()


def walk(problem: Problem, theta: Array, direction: Array, tolerance: float) -> Flat:
    """Both ways along a direction until the loss has risen by the tolerance or a bound is met."""
    direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
    limit = problem.loss(theta) + tolerance
    low, high = problem.bounds
    ends, open_ended = [], False
    for step in (-direction, direction):
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step > 0, high - theta, low - theta) / step
        reach = float(np.min(room[np.abs(step) > 1e-12]))
        # Steps that grow geometrically: the flat stretch may be a thousandth of the box.
        lengths = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, _STEPS) * max(reach, 0.0)])
        inside = problem.loss(theta + lengths[:, None] * step) <= limit
        last = len(lengths) - 1 if inside.all() else int(np.argmin(inside)) - 1
        # A fit that lies on a bound has not walked there.
        open_ended |= bool(inside.all()) and reach > 1e-3
        end = np.clip(theta + lengths[max(last, 0)] * step, low, high)
        ends.append(tuple(end.tolist()))
    low_end, high_end = ends
    return Flat(problem.names, low_end, high_end, open_ended)


def directions(problem: Problem) -> Array:
    """Right singular vectors of the design matrix, those that move T least first, (p, p).

    The loss is piecewise linear, so it has no Hessian to take eigenvectors of; but θ acts through
    T = Xθ alone, and the singular vectors of X order the directions by how much they move T.
    """
    found: Array = np.linalg.svd(problem.design)[2][::-1]
    return found
