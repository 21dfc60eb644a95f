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
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tstar.errors import whole
from tstar.imports import require
from tstar.lab.curves.conditions import Curve
from tstar.lab.curves.reading import Metric
from tstar.lab.fitting.model import MAXIMUM, MINIMUM, Problem

Array = NDArray[np.float64]
RESTARTS = 3
TOLERANCE = 1e-3  # a tenth of a percentage point of mean accuracy: no one would notice
_MOST = 2_000_000  # crossings
_STARTS = 4
_SAME = 1e-12
_AGREED = 1e-4  # a hundredth of a point
_CANDIDATES = 15  # a coefficient


@dataclass(frozen=True)
class Solution:
    """The coefficients, their mean regret, and what the search says of itself.

    ``success``: the search is exhaustive, or most of its restarts reached this regret.
    """

    theta: tuple[float, ...]
    regret: float
    success: bool = True
    how: str = "all crossings of the grids' lines, and a simplex from the best"


# The solutions of the same conditions, by the names of the coefficients.
Solutions: TypeAlias = dict[tuple[str, ...], Solution]


def solve(
    problem: Problem, seed: int = 0, restarts: int = RESTARTS, solved: Solutions | None = None
) -> Solution:
    """The coefficients of lowest mean regret; if several pairs tie, those with the smallest α.

    They are never worse than the paper's, nor than those of a variant with fewer terms: the search
    starts from both. ``solved`` is where the variants of the same conditions are looked up and
    written down.
    """
    seed, restarts = whole("seed", seed, least=0), whole("restarts", restarts, least=1)
    solved = {} if solved is None else solved
    if problem.names not in solved:
        starts = [problem.published]
        for name in problem.names[2:]:
            special = solve(problem.without(name), seed, restarts, solved)
            starts.append(np.insert(special.theta, problem.names.index(name), 0.0))
        points = crossings(problem) if len(problem.names) == 2 else None
        solved[problem.names] = (
            _evolved(problem, np.array(starts), seed, restarts)
            if points is None
            else _best(problem, np.vstack([points, *starts]))
        )
    return solved[problem.names]


def _lowest(points: Array, loss: Array) -> Array:
    """The pair of lowest loss; of several the one with the smallest α."""
    tied = points[loss <= loss.min() + _SAME]
    lowest: Array = tied[np.lexsort((np.abs(tied[:, 1]), tied[:, 0]))[0]]
    return lowest


def _best(problem: Problem, points: Array) -> Solution:
    """The best of many pairs, and of the simplexes that start at the first few."""
    starts = points[np.argsort(losses(problem, points), kind="stable")[:_STARTS]]
    points = np.vstack([points, *(_polished(problem, start) for start in starts)])
    theta = _lowest(points, losses(problem, points))
    return Solution(tuple(theta.tolist()), float(problem.loss(theta)))


def _evolved(problem: Problem, starts: Array, seed: int, restarts: int) -> Solution:
    """Several evolutions, each polished, with the starts in every first population."""
    low, high = problem.bounds
    ends = []
    for sequence in np.random.SeedSequence(seed).spawn(restarts):
        rng = np.random.default_rng(sequence)
        population = rng.uniform(low, high, (_CANDIDATES * len(low), len(low)))
        population[: len(starts)] = starts
        ends.append(_polished(problem, _evolve(problem, population, rng)))
    every = np.vstack([ends, starts])
    loss = losses(problem, every)
    reached = int((loss[:restarts] <= loss.min() + _AGREED).sum())
    words = f"differential evolution, {reached} of {restarts} restarts reached this regret"
    best = int(loss.argmin())
    theta = tuple(every[best].tolist())
    return Solution(theta, float(loss[best]), 2 * reached > restarts, words)


def _evolve(problem: Problem, population: Array, rng: np.random.Generator) -> Array:
    """Differential evolution (Storn and Price 1997) of a first population."""
    result: Any = require("scipy.optimize", "lab").differential_evolution(
        lambda x: problem.loss(x.T),  # SciPy's populations are (p, S)
        problem.bounds.T,
        init=population,
        rng=rng,
        strategy="currenttobest1bin",
        tol=1e-3,
        atol=1e-6,
        polish=False,
        updating="deferred",
        vectorized=True,
    )
    best: Array = result.x
    return best


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


def _polished(problem: Problem, start: Array) -> Array:
    """The end of a search made sharp; the loss has kinks, so a simplex does it."""
    how = {"method": "Nelder-Mead", "options": {"xatol": 1e-6, "fatol": 1e-10}}
    minimize = require("scipy.optimize", "lab").minimize
    result: Any = minimize(problem.loss, start, bounds=problem.bounds.T, **how)
    better: Array = result.x if result.fun < problem.loss(start) else start
    return better


def noise(curves: Sequence[Curve], metric: Metric) -> float | None:
    """How much two mean regrets may differ by chance: 1.96·sqrt(2) standard errors of the seeds.

    With a single seed nothing is known of it.
    """
    seen = [[*c.by_seed(T, metric).values()] for c in curves for T in c.temperatures]
    several = [values for values in seen if len(values) > 1]
    if not several:
        return None
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
