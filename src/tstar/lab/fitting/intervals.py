"""How sure coefficients are: bootstrap intervals, and which ones the runs leave open."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError, whole
from tstar.lab.curves.conditions import Curve
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
    wanted, draws = whole("bootstrap", replicates, least=2), list[Problem]()
    for _ in range(100 * wanted):  # until enough can tell the coefficients apart
        picks = [conditions[i] for i in rng.integers(len(conditions), size=len(conditions))]
        problem = pose([c.take(rng.integers(len(c.seeds), size=len(c.seeds))) for c in picks])
        draws += [problem] if tells_apart(problem.design) else []
        if len(draws) == wanted:
            break
    else:
        n, p = problem.design.shape
        raise TstarError(
            f"The bootstrap over conditions needs more conditions than {n} to separate {p} "
            "coefficients; leave the bootstrap out, or add runs."
        )
    refits = [solve(problem, seed, restarts=1).theta for problem in draws]
    low, high = np.quantile(refits, [(1 - level) / 2, (1 + level) / 2], axis=0).tolist()
    return dict(zip(draws[0].names, zip(low, high, strict=True), strict=True))


def unidentified(problem: Problem, theta: Array, tolerance: float) -> tuple[str, ...]:
    """The coefficients that some line from the fit to a bound of the search leaves open.

    On it the mean regret rises by no more than the tolerance. θ acts through T = Xθ alone, and the
    right singular vectors of X, along which we look, order the directions by how much they move T.
    """
    low, high = problem.bounds
    moved: set[str] = set()
    for direction in np.linalg.svd(problem.design)[2]:
        for step in (-direction, direction):
            with np.errstate(divide="ignore", invalid="ignore"):
                room = np.where(step > 0, high - theta, low - theta) / step
            reach = float(np.min(room[np.abs(step) > 1e-12]))
            line = theta + np.linspace(0.0, reach, _STEPS)[:, None] * step
            costs_little = (problem.loss(line) <= problem.loss(theta) + tolerance).all()
            if reach > 1e-3 and costs_little:  # a fit that lies on a bound has not moved there
                names = zip(problem.names, np.abs(step) > 0.05, strict=True)
                moved |= {name for name, does in names if does}
    return tuple(name for name in problem.names if name in moved)
