"""The coefficients of lowest regret, and all those that noise cannot tell from them.

The curves are piecewise linear, so the plane of α and β falls into cells in which the loss is
smooth: its borders are the lines α·sqrt(M) + β = T, one for each width and node of the grid. Two
coefficients are therefore found by enumeration: all crossings of these lines (the optimum is one of
them for curves linear in T), and a simplex from the best of them (in ln T a cell may have its
optimum inside). The result hangs on no seed. More coefficients have too many crossings:
differential evolution, restarted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tstar.checks import whole
from tstar.imports import require
from tstar.lab.curves.conditions import Curve
from tstar.lab.curves.reading import Metric
from tstar.lab.fitting.model import MAXIMUM, MINIMUM, Problem

Array = NDArray[np.float64]
RESTARTS = 3
TOLERANCE = 1e-3  # a tenth of a percentage point of mean accuracy: no one would notice
_MOST = 2_000_000  # crossings
_STARTS = 8
_SAME = 1e-12


@dataclass(frozen=True)
class Solution:
    """The coefficients, their mean regret, and what the optimizer says of itself."""

    theta: tuple[float, ...]
    regret: float
    success: bool = True
    how: str = "all crossings of the grids' lines, and a simplex from the best"


def solve(problem: Problem, seed: int = 0, restarts: int = RESTARTS) -> Solution:
    """The coefficients of lowest mean regret; if several tie, those with the smallest α."""
    seed, restarts = whole("seed", seed, least=0), whole("restarts", restarts, least=1)
    points = crossings(problem) if len(problem.names) == 2 else None
    if points is None:
        return evolved(problem, problem.bounds, seed, restarts)
    starts = points[np.argsort(losses(problem, points), kind="stable")[:_STARTS]]
    ends = [_polished(problem, problem.bounds, start) for start in starts]
    points = np.vstack([points, *ends])
    loss = losses(problem, points)
    tied = points[loss <= loss.min() + _SAME]
    alpha, beta = tied[np.lexsort((np.abs(tied[:, 1]), tied[:, 0]))[0]]
    return Solution((float(alpha), float(beta)), float(loss.min()))


def crossings(problem: Problem, split: int = 1) -> Array | None:
    """All crossings of the lines α·x + β = T, and with the bounds, (V, 2); ``None`` if too many.

    ``split`` cuts every segment of the grids into so many, for a finer net.
    """
    nodes = problem.curves.nodes
    parts = np.linspace(nodes[:-1], nodes[1:], split, endpoint=False).T.ravel()
    nodes = np.append(parts, nodes[-1])
    levels = np.exp(nodes) if problem.curves.interpolation == "lnT" else nodes
    levels = np.unique(np.clip([MINIMUM, *levels, MAXIMUM], MINIMUM, MAXIMUM))
    widths = np.unique(problem.design[:, 0])
    x, T = (grid.ravel() for grid in np.meshgrid(widths, levels, indexing="ij"))
    if len(x) ** 2 / 2 > _MOST:
        return None
    i, j = np.triu_indices(len(x), 1)
    i, j = i[x[i] != x[j]], j[x[i] != x[j]]
    alpha = (T[i] - T[j]) / (x[i] - x[j])
    low, high = problem.bounds
    found = [np.stack([alpha, T[i] - alpha * x[i]], axis=1)]
    for a, b in (low, high):
        found.append(np.stack([np.full_like(x, a), T - a * x], axis=1))
        found.append(np.stack([(T - b) / x, np.full_like(x, b)], axis=1))
        found.append(np.array([[low[0], b], [high[0], b]]))
    points = np.vstack(found) + 0.0  # no -0.0
    inside: Array = points[((points >= low - 1e-9) & (points <= high + 1e-9)).all(axis=1)]
    return inside


def losses(problem: Problem, points: Array) -> Array:
    """The loss of many points, a portion at a time."""
    portion = max(1, 4_000_000 // len(problem.design))
    parts = [problem.loss(points[i : i + portion]) for i in range(0, len(points), portion)]
    return np.concatenate(parts)


def _polished(problem: Problem, bounds: Array, start: Array) -> Array:
    """The end of a search made sharp; the loss has kinks, so a simplex does it."""
    how = {"method": "Nelder-Mead", "options": {"xatol": 1e-7, "fatol": 1e-12}}
    minimize = require("scipy.optimize", "lab").minimize
    result: Any = minimize(problem.loss, start, bounds=bounds.T, **how)
    better: Array = result.x if result.fun < problem.loss(start) else start
    return better


def evolved(problem: Problem, bounds: Array, seed: int, restarts: int) -> Solution:
    """Differential evolution (Storn and Price 1997), several times; the best is polished."""
    evolve = require("scipy.optimize", "lab").differential_evolution
    how = {"polish": False, "updating": "deferred", "vectorized": True, "tol": 1e-6, "atol": 1e-9}
    found: list[Any] = [
        # SciPy's populations are (p, S).
        evolve(lambda theta: problem.loss(theta.T), bounds.T, rng=np.random.default_rng(s), **how)
        for s in np.random.SeedSequence(seed).spawn(restarts)
    ]
    best = min(found, key=lambda result: result.fun)
    theta = _polished(problem, bounds, best.x)
    converged = sum(bool(result.success) for result in found)
    said = f"differential evolution, {converged} of {restarts} restarts converged"
    return Solution(tuple(theta.tolist()), float(problem.loss(theta)), bool(best.success), said)


def noise(curves: Sequence[Curve], metric: Metric) -> float:
    """How much two mean regrets may differ by chance: 1.96·sqrt(2) standard errors of the seeds.

    With a single seed nothing is known of it, and :data:`TOLERANCE` stands in.
    """
    seen = [[*c.by_seed(T, metric).values()] for c in curves for T in c.temperatures]
    several = [values for values in seen if len(values) > 1]
    if not several:
        return TOLERANCE
    variance = np.mean([np.var(values, ddof=1) for values in several])
    error = (variance / np.mean([len(values) for values in several]) / len(curves)) ** 0.5
    return max(1.96 * 2**0.5 * float(error), 1e-6)


def ranges(
    problem: Problem, found: Solution, tolerance: float
) -> tuple[dict[str, tuple[float, float]], bool]:
    """The range of α and of β that costs less than the tolerance, and whether it is closed.

    α and β are not identified if it reaches a bound of the search. α = 0 is no such bound: it
    says that T does not grow with M.
    """
    nets = (crossings(problem, split) for split in (4, 1))
    points = next((net for net in nets if net is not None), np.array([found.theta]))
    every = np.vstack([points, found.theta])
    near = every[losses(problem, every) <= found.regret + tolerance]
    low, high = near.min(axis=0), near.max(axis=0)
    least, most = problem.bounds
    open_ended = low[1] - least[1] < 1e-6 or (most - high < 1e-6).any()
    spans = zip(low.tolist(), high.tolist(), strict=True)
    return dict(zip(problem.names, spans, strict=True)), not open_ended
