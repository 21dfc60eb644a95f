"""The one number of a report, with its uncertainty: what the formula's T gained, and what it left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError
from tstar.report.records import Records, Sweep, without

Array = NDArray[np.float64]
LEVEL = 0.95
FEW = 5  # conditions below which a bootstrap interval means little


@dataclass(frozen=True)
class Estimate:
    """A mean in points, and the bootstrap interval of it."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"


@dataclass(frozen=True)
class Headline:
    """The formula's T with BN against T = 1, and against the best T of the grid.

    Attributes:
        gain: accuracy at the formula's T − accuracy at T = 1; ``None`` where T = 1 was not run.
        regret: accuracy at the best T − accuracy at the formula's T.
        against: what T = 1 is: ``"without BN"``, the usual way, or ``"with BN"`` where only that was run.
        over: what the bootstrap draws again: ``"data sets"`` or ``"conditions"``, and seeds within.
        better: conditions of ``compared`` in which the formula's T did better than T = 1.
    """

    gain: Estimate | None
    regret: Estimate
    against: str
    over: str
    conditions: int
    compared: int
    better: int
    datasets: int
    metric: str

    @property
    def few(self) -> bool:
        return self.conditions < FEW

    @property
    def sentence(self) -> str:
        regret = (
            f"It lost {self.regret.value:.2f} points [{self.regret.low:.2f}, {self.regret.high:.2f}] against "
            f"the best temperature of the grid (mean over {self.conditions} conditions)."
        )
        if self.gain is None:
            return "T = 1 was not run, so that nothing can be said about the gain. " + regret
        verb = "raised" if self.gain.value >= 0 else "lowered"
        return (
            f"Training at the formula's T with BatchNorm, in place of T = 1 {self.against}, {verb} {self.metric} "
            f"accuracy by {abs(self.gain.value):.2f} points (95 % interval {self.gain.low:+.2f} to "
            f"{self.gain.high:+.2f}), and did better in {self.better} of {self.compared} conditions. {regret}"
        )

    @property
    def method(self) -> str:
        """How the numbers were made."""
        few = " With so few conditions the interval means little." if self.few else ""
        return (
            f"A condition is everything but T and the seed; means are over conditions, and a diverged run counts "
            f"as chance. The formula's T is rarely on the grid: accuracy there is the linear interpolation "
            f"between its neighbours. The interval is the {100 * LEVEL:g} % percentile interval of a bootstrap over {self.over} and over seeds within them.{few}"
        )


@dataclass(frozen=True)
class _Case:
    """One condition with BN: its sweep, and the seeds at T = 1 that it is compared with."""

    sweep: Sweep
    at_one: tuple[float, ...] | None


def headline(records: Records, replicates: int = 2000, seed: int = 0) -> Headline:
    """From all conditions with BN, three temperatures and a recommended T."""
    sweeps = [s for s in records.with_norm("batch", 3) if s.recommended is not None]
    if not sweeps:
        raise TstarError(
            "A headline needs conditions with BN, three temperatures at least and a known M, got none."
        )
    plain = {without(s, "norm"): s for s in records.with_norm("none", 1)}
    pairs = [(s, plain.get(without(s, "norm"))) for s in sweeps]
    usual = any(p is not None and p.index_of(1) is not None for _, p in pairs)
    cases = [_Case(s, _at_one(p if usual else s)) for s, p in pairs]
    rng = np.random.default_rng(seed)
    compared = [case for case in cases if case.at_one is not None]
    _, over = _drawing(cases)
    gain, better = None, 0
    if compared:
        gain = _estimate(compared, _gain, replicates, rng)
        better = sum(_gain(case, _mean) > 0 for case in compared)
    return Headline(
        gain=gain,
        regret=_estimate(cases, _regret, replicates, rng),
        against="without BN" if usual else "with BN",
        over=over,
        conditions=len(cases),
        compared=len(compared),
        better=better,
        datasets=len({case.sweep.facts.get("dataset") for case in cases}),
        metric=records.metric,
    )


Average = Callable[[tuple[float, ...]], float]


def _at_one(sweep: Sweep | None) -> tuple[float, ...] | None:
    index = None if sweep is None else sweep.index_of(1)
    return None if sweep is None or index is None else sweep.condition.accuracies[index]


def _gain(case: _Case, average: Average) -> float:
    assert case.at_one is not None
    return 100 * (_at_formula(case.sweep, average) - average(case.at_one))


def _regret(case: _Case, average: Average) -> float:
    best = average(case.sweep.condition.accuracies[case.sweep.best])
    return 100 * (best - _at_formula(case.sweep, average))


def _at_formula(sweep: Sweep, average: Average) -> float:
    """Interpolated accuracy at the formula's T, whatever averages the seeds."""
    T, grid = sweep.recommended, sweep.temperatures
    assert T is not None
    upper = min(int(np.searchsorted(grid, T)), len(grid) - 1)
    lower = max(upper - 1, 0)
    values = sweep.condition.accuracies
    if grid[0] >= T or grid[-1] <= T:
        return average(values[0 if grid[0] >= T else -1])
    share = (T - grid[lower]) / (grid[upper] - grid[lower])
    return (1 - share) * average(values[lower]) + share * average(values[upper])


def _mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values)


def _drawing(cases: list[_Case]) -> tuple[list[list[int]], str]:
    """What is drawn as one: all conditions of a data set, or with fewer than three, each condition."""
    groups: dict[object, list[int]] = {}
    for i, case in enumerate(cases):
        groups.setdefault(case.sweep.facts.get("dataset"), []).append(i)
    if len(groups) >= 3:
        return [*groups.values()], "data sets"
    return [[i] for i in range(len(cases))], "conditions"


def _estimate(
    cases: list[_Case],
    value: Callable[[_Case, Average], float],
    replicates: int,
    rng: np.random.Generator,
) -> Estimate:
    # Seeds first: each condition's value with its seeds drawn again, then whole groups of conditions.
    noisy = np.array([_redrawn(case, value, replicates, rng) for case in cases])
    groups, _ = _drawing(cases)
    picks = rng.integers(0, len(groups), (replicates, len(groups)))
    means = np.empty(replicates)
    for b in range(replicates):
        chosen = [i for g in picks[b] for i in groups[g]]
        means[b] = noisy[chosen, b].mean()
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    point = float(np.mean([value(case, _mean) for case in cases]))
    return Estimate(point, float(low), float(high))


def _redrawn(
    case: _Case,
    value: Callable[[_Case, Average], float],
    replicates: int,
    rng: np.random.Generator,
) -> Array:
    """The value with seeds drawn again with replacement: shape (replicates,)."""

    def average(values: tuple[float, ...]) -> Array:
        n = len(values)
        drawn: Array = np.asarray(values)[rng.integers(0, n, (replicates, n))].mean(axis=1)
        return drawn

    # The formulas are linear in the averages, so that they work on all replicates at once.
    return np.asarray(value(case, average))  # type: ignore[arg-type]
