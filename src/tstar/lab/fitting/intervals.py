"""How sure coefficients are: bootstrap intervals, and directions in which they may move together.

An interval is the percentile interval of refits to conditions that are drawn again, widened to
every point that the noise cannot tell from the fitted one: on lines through it, all coefficients
whose mean regret exceeds the lowest by less than τ, the quantile (at the interval's level) of what
the fitted coefficients lose to each refit on the refit's own conditions. So it always holds the
estimate, and it spans a plateau.

All replicates are refitted at once, by one differential evolution on an array of replicates ×
candidates × coefficients. Half of the candidates start around the fitted coefficients, half
anywhere. It mutates random candidates: the best one would hold every replicate near the fit, and
make the intervals too narrow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tstar.checks import whole
from tstar.errors import TstarError
from tstar.lab.fitting.model import Problem, tells_apart

Array = NDArray[np.float64]
CANDIDATES = 10  # a coefficient
GENERATIONS = 250
_CROSSOVER = 0.9
_SPREAD = 0.02  # of the start around the fit, in widths of the box
_STEPS = 2000


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


def intervals(
    problem: Problem, theta: Array, *, replicates: int, seed: int, level: float = 0.95
) -> dict[str, tuple[float, float]]:
    """The interval of each coefficient, from refits to conditions that are drawn again."""
    replicates = whole("bootstrap", replicates, least=2)
    rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
    weights = np.stack([_weights(problem, rng) for _ in range(replicates)])
    refits = _refit(problem, weights, theta, rng)
    mine = np.broadcast_to(theta, (replicates, 1, len(theta)))
    lost = _loss(problem, weights, mine) - _loss(problem, weights, refits[:, None])
    hidden = float(np.quantile(np.maximum(lost[:, 0], 0.0), level))
    ends = [*np.quantile(refits, [(1 - level) / 2, (1 + level) / 2], axis=0), theta]
    for direction in (*directions(problem), *np.eye(len(theta))):
        flat = walk(problem, theta, direction, hidden)
        ends += [np.array(flat.low), np.array(flat.high)]
    spans = zip(np.min(ends, axis=0).tolist(), np.max(ends, axis=0).tolist(), strict=True)
    return dict(zip(problem.names, spans, strict=True))


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
        ends.append(tuple((theta + lengths[max(last, 0)] * step).tolist()))
    low_end, high_end = ends
    return Flat(problem.names, low_end, high_end, open_ended)


def directions(problem: Problem) -> Array:
    """Right singular vectors of the design matrix, those that move T least first, (p, p).

    The loss is piecewise linear, so it has no Hessian to take eigenvectors of; but θ acts through
    T = Xθ alone, and the singular vectors of X order the directions by how much they move T.
    """
    found: Array = np.linalg.svd(problem.design)[2][::-1]
    return found


def _loss(problem: Problem, weights: Array, candidates: Array) -> Array:
    """The mean regret of (replicates, candidates, p) over each replicate's conditions."""
    regret: Array = np.einsum("bsn,bn->bs", problem.regret(candidates), weights)
    return regret


def _weights(problem: Problem, rng: np.random.Generator) -> Array:
    """How often each condition is drawn, as shares; drawn again if it cannot tell θ apart."""
    n, p = problem.design.shape
    for _ in range(100):
        shares: Array = rng.multinomial(n, np.full(n, 1 / n)) / n
        if tells_apart(problem.design[shares > 0]):
            return shares
    raise TstarError(
        f"The bootstrap over conditions needs more conditions than {n} to tell {p} coefficients "
        "apart; leave the bootstrap out, or add runs."
    )


def _refit(problem: Problem, weights: Array, theta: Array, rng: np.random.Generator) -> Array:
    """Differential evolution (rand/1/bin, dithered) on every replicate at once: (B, p)."""
    replicates, p = len(weights), len(theta)
    size = CANDIDATES * p
    low, high = problem.bounds
    population = rng.uniform(low, high, (replicates, size, p))
    near = theta + rng.normal(0, _SPREAD, (replicates, size // 2, p)) * (high - low)
    population[:, : size // 2] = np.clip(near, low, high)
    energy = _loss(problem, weights, population)
    rows = np.arange(replicates)[:, None]
    for _ in range(GENERATIONS):
        base, first, second = (
            population[rows, index] for index in rng.integers(0, size, (3, replicates, size))
        )
        mutant = base + rng.uniform(0.5, 1.0, (replicates, 1, 1)) * (first - second)
        keep = rng.random((replicates, size, p)) >= _CROSSOVER
        keep[rows, np.arange(size), rng.integers(0, p, (replicates, size))] = False
        trial = np.where(keep, population, mutant)
        outside = (trial < low) | (trial > high)
        trial = np.where(outside, rng.uniform(low, high, trial.shape), trial)
        trial_energy = _loss(problem, weights, trial)
        improved = trial_energy <= energy
        population = np.where(improved[..., None], trial, population)
        energy = np.where(improved, trial_energy, energy)
    best: Array = population[np.arange(replicates), energy.argmin(axis=1)]
    return best
