"""A temperature judged on one condition: regret to the oracle, gain over the two baselines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    over = {
        name: gains_by_seed(condition, whole, temperature, name, on) for name in ("plain", "bn_one")
    }
    gain, gain_bn = (float(g.mean()) if len(g) else None for g in over.values())
    return Judged(
        temperature=float(temperature),
        accuracy=accuracy,
        best_temperature=curve.best,
        best=best,
        seeds=len(curve.seeds),
        regret=100 * (best - accuracy),
        gain=gain,
        gain_bn=gain_bn,
        plain_seeds=len(over["plain"]),
        extrapolated=not curve.temperatures[0] <= temperature <= curve.temperatures[-1],
    )


def gains_by_seed(
    condition: Condition, curve: Curve, temperature: float, baseline: str, on: Metric = "test"
) -> NDArray[np.float64]:
    """Accuracy at T minus a baseline's ("plain" or "bn_one"), in points, for each seed that both have."""
    there = curve.at_by_seed(temperature, on)
    usual = condition.curve()
    bn = {} if usual is None else usual.by_seed(1.0, on)
    base = condition.plain_by_seed(on) if baseline == "plain" else bn
    return np.array([100 * (there[s] - base[s]) for s in sorted(there.keys() & base.keys())])
