"""A temperature judged on one condition: regret to the oracle, gain over the two baselines."""

from __future__ import annotations

from dataclasses import dataclass

from tstar.curves.conditions import Condition, Curve
from tstar.curves.reading import Metric


@dataclass(frozen=True)
class Judged:
    """What a T is worth in one condition. Accuracies are fractions, differences points.

    Attributes:
        temperature: T.
        accuracy: the mean accuracy there, interpolated in ln T.
        best_temperature: the oracle's T, chosen by validation accuracy.
        best: the accuracy there.
        seeds: how many seeds these are means of.
        regret: 100·(best − accuracy). It may be negative, where validation misled the oracle.
        gain: 100·(accuracy − plain) over the ``plain_seeds`` that both have; ``None`` without any.
        gain_bn: the same over BN, T = 1.
        extrapolated: whether T lies outside the grid.
    """

    temperature: float
    accuracy: float
    best_temperature: float
    best: float
    seeds: int
    regret: float
    gain: float | None
    gain_bn: float | None
    plain_seeds: int
    extrapolated: bool


def judge(
    condition: Condition,
    temperature: float,
    *,
    norm: str = "batch",
    backbone: str = "as-is",
    on: Metric = "test",
) -> Judged | None:
    """A temperature on the condition's curve under a norm and backbone; ``None`` where none was run."""
    whole = condition.curve(norm, backbone)
    if whole is None:
        return None
    curve = whole.matched()  # the grid is compared along its seeds
    accuracy, best = curve.at(temperature, on), curve.at(curve.best, on)
    plain = condition.plain_by_seed(on)
    usual = condition.curve()
    gain, plain_seeds = _gain(whole, temperature, plain, on)
    gain_bn, _ = _gain(whole, temperature, usual.by_seed(1.0, on) if usual else {}, on)
    return Judged(
        temperature=float(temperature),
        accuracy=accuracy,
        best_temperature=curve.best,
        best=best,
        seeds=len(curve.seeds),
        regret=100 * (best - accuracy),
        gain=gain,
        gain_bn=gain_bn,
        plain_seeds=plain_seeds,
        extrapolated=not curve.temperatures[0] <= temperature <= curve.temperatures[-1],
    )


def _gain(
    curve: Curve, temperature: float, baseline: dict[int, float], on: Metric
) -> tuple[float | None, int]:
    """Accuracy at T minus a baseline's, in points, over the seeds that both have; and their number."""
    there = curve.at_by_seed(temperature, on)
    common = there.keys() & baseline.keys()
    if not common:
        return None, 0
    return 100 * sum(there[seed] - baseline[seed] for seed in common) / len(common), len(common)
