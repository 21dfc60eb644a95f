"""Intervals of the coefficients: over seeds, and over conditions.

An interval is the percentile interval of bootstrap refits, widened to every point that the noise cannot tell from
the fitted one: on lines through it, all coefficients whose mean regret exceeds the lowest by less than τ, the quantile
(at the interval's level) of what the fitted coefficients lose to each refit on the refit's own curves. So it always holds
the estimate, and on a plateau, where refits land anywhere, it spans the plateau.

All replicates are refitted at once. One differential evolution runs on an array of replicates ×
candidates × coefficients, with fewer candidates than the main search and a warm start: half of the
candidates lie around the fitted coefficients, half anywhere in the box. A fixed number of
generations replaces a test of convergence. It mutates random candidates, not the best one, which
near the fitted coefficients would hold every replicate there and make the intervals too narrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tstar.curves.conditions import Average, Curve
from tstar.curves.lines import Lines, lines
from tstar.curves.reading import Metric
from tstar.errors import TstarError
from tstar.fitting.flatness import directions, walk
from tstar.fitting.model import Problem
from tstar.numbers import share, whole

Array = NDArray[np.float64]
Over = Literal["seeds", "conditions"]
CANDIDATES = 10  # a coefficient
GENERATIONS = 250
_CROSSOVER = 0.9
_SPREAD = 0.02  # of the warm start, in widths of the box


@dataclass(frozen=True)
class Interval:
    """The interval of each coefficient, and the refits behind it, shape (replicates, p)."""

    over: Over
    level: float
    ranges: Mapping[str, tuple[float, float]]
    replicates: tuple[tuple[float, ...], ...]


def intervals(
    curves: Sequence[Curve],
    metric: Metric,
    problem: Problem,
    theta: Array,
    bounds: Array,
    *,
    replicates: int,
    seed: int,
    average: Average = "mean",
    level: float = 0.95,
) -> tuple[Interval, ...]:
    """Intervals over seeds (where every temperature has two) and over conditions.

    Over seeds: at each temperature of each condition n − 1 of its n accuracies are drawn with replacement, whose mean
    varies as much as the mean of n new ones would. Over conditions: whole conditions are drawn again, which also asks
    how the answer depends on what was studied.
    """
    replicates = whole("bootstrap", replicates, least=2)
    share("level", level, zero=False)
    rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
    found: list[Interval] = []
    if all((curve.ran.sum(axis=0) > 1).all() for curve in curves):
        drawn = [_redraw(curves, metric, problem.curves, average, rng) for _ in range(replicates)]
        weights = np.tile(problem.weights, (replicates, 1))
        found.append(_interval("seeds", problem, _stack(drawn), weights, theta, bounds, level, rng))
    weights = np.stack([_weights(problem, rng) for _ in range(replicates)])
    same = _stack([problem.curves] * replicates)
    found.append(_interval("conditions", problem, same, weights, theta, bounds, level, rng))
    return tuple(found)


def _interval(
    over: Over,
    problem: Problem,
    stack: Lines,
    weights: Array,
    theta: Array,
    bounds: Array,
    level: float,
    rng: np.random.Generator,
) -> Interval:
    refits = _refit(problem, stack, weights, theta, bounds, rng)
    mine = np.broadcast_to(theta, (len(refits), 1, len(theta)))
    lost = _loss(problem, stack, weights, mine) - _loss(problem, stack, weights, refits[:, None])
    hidden = float(np.quantile(np.maximum(lost[:, 0], 0.0), level))
    low, high = np.quantile(refits, [(1 - level) / 2, (1 + level) / 2], axis=0)
    ends = [low, high, theta]
    for direction in (*directions(problem), *np.eye(len(theta))):
        flat = walk(problem, theta, direction, bounds, hidden)
        ends += [np.array(flat.low), np.array(flat.high)]
    lowest, highest = np.min(ends, axis=0), np.max(ends, axis=0)
    return Interval(
        over,
        level,
        {n: (float(lowest[i]), float(highest[i])) for i, n in enumerate(problem.names)},
        tuple(tuple(float(x) for x in row) for row in refits),
    )


def _loss(problem: Problem, stack: Lines, weights: Array, candidates: Array) -> Array:
    """Minus the mean accuracy of (replicates, candidates, p) on each replicate's own curves."""
    accuracy = stack(problem.temperatures(candidates))
    negative: Array = -np.einsum("bsn,bn->bs", accuracy, weights)
    return negative


def _redraw(
    curves: Sequence[Curve],
    metric: Metric,
    like: Lines,
    average: Average,
    rng: np.random.Generator,
) -> Lines:
    """Lines through averages of accuracies drawn again with replacement, T by T."""
    reduce = np.nanmean if average == "mean" else np.nanmedian
    observed = []
    for curve in curves:
        count = curve.ran.sum(axis=0)
        places = np.argsort(~curve.ran, axis=0, kind="stable")  # the seeds that were run, first
        picks = (rng.random(curve.ran.shape) * count).astype(int)
        kept = np.maximum(count - 1, 1)
        drawn = np.take_along_axis(
            curve.values(metric), np.take_along_axis(places, picks, axis=0), axis=0
        )
        drawn[np.arange(len(drawn))[:, None] >= kept] = np.nan
        observed.append(reduce(drawn, axis=0))
    return lines(curves, metric, average, like.interpolation, observed)


def _weights(problem: Problem, rng: np.random.Generator) -> Array:
    """How often each condition is drawn, as shares; drawn again if it cannot tell θ apart."""
    n, p = problem.design.shape
    for _ in range(100):
        counts = rng.multinomial(n, np.full(n, 1 / n)).astype(float)
        scaled = problem.design[counts > 0] / np.linalg.norm(problem.design, axis=0)
        if np.linalg.matrix_rank(scaled, tol=1e-6) == p:
            shares: Array = counts / n
            return shares
    raise TstarError(
        f"The bootstrap over conditions needs more conditions than {n} to tell {p} coefficients apart; "
        "leave the bootstrap out, or add runs."
    )


def _stack(drawn: Sequence[Lines]) -> Lines:
    """Lines of all replicates on shared nodes: arrays with a leading axis."""
    intercept, slope = (np.stack([getattr(c, n) for c in drawn]) for n in ("intercept", "slope"))
    return replace(drawn[0], intercept=intercept, slope=slope)


def _refit(
    problem: Problem,
    stack: Lines,
    weights: Array,
    theta: Array,
    bounds: Array,
    rng: np.random.Generator,
) -> Array:
    """Differential evolution (rand/1/bin, dithered) on every replicate at once: (B, p)."""
    replicates, p = len(weights), len(theta)
    size = CANDIDATES * p
    low, high = bounds.T

    population = rng.uniform(low, high, (replicates, size, p))
    near = theta + rng.normal(0, _SPREAD, (replicates, size // 2, p)) * (high - low)
    population[:, : size // 2] = np.clip(near, low, high)
    energy = _loss(problem, stack, weights, population)
    rows = np.arange(replicates)[:, None]
    for _ in range(GENERATIONS):
        base, first, second = (
            population[rows, index] for index in rng.integers(0, size, (3, replicates, size))
        )
        scale = rng.uniform(0.5, 1.0, (replicates, 1, 1))
        mutant = base + scale * (first - second)
        keep = rng.random((replicates, size, p)) >= _CROSSOVER
        keep[rows, np.arange(size), rng.integers(0, p, (replicates, size))] = False
        trial = np.where(keep, population, mutant)
        outside = (trial < low) | (trial > high)
        trial = np.where(outside, rng.uniform(low, high, trial.shape), trial)
        trial_energy = _loss(problem, stack, weights, trial)
        improved = trial_energy <= energy
        population = np.where(improved[..., None], trial, population)
        energy = np.where(improved, trial_energy, energy)
    best: Array = population[np.arange(replicates), energy.argmin(axis=1)]
    return best
