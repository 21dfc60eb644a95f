"""A temperature judged on one condition: regret to the oracle, gain over the two baselines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tstar.lab.curves.conditions import Condition, Curve, averaged
from tstar.lab.curves.reading import Metric


@dataclass(frozen=True)
class Judged:
    """What a T is worth in one condition. Accuracies are fractions, differences points.

    Attributes:
        temperature: T. accuracy: the average there, interpolated in ln T.
        best_temperature: the oracle's T, chosen by validation accuracy. best: the accuracy there.
        seeds: how many seeds these are averages of.
        regret: 100·(best − accuracy). It is negative if validation misled the oracle.
        gain: 100·(accuracy − plain) over the ``plain_seeds`` that both have, if any.
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
    condition: Condition, temperature: float, *, norm: str = "batch", on: Metric = "test"
) -> Judged | None:
    """A temperature on the curve under a norm; ``None`` if that was not run."""
    whole = condition.curve(norm)
    if whole is None:
        return None
    curve = whole.matched()  # the grid is compared along its seeds
    accuracy, best = curve.at(temperature, on), curve.at(curve.best, on)
    gains = [gains_by_seed(condition, whole, temperature, b, on) for b in ("plain", "bn_one")]
    gain, gain_bn = (float(averaged(g, whole.average)) if len(g) else None for g in gains)
    outside = not curve.temperatures[0] <= temperature <= curve.temperatures[-1]
    found = (float(temperature), accuracy, curve.best, best, len(curve.seeds))
    return Judged(*found, 100 * (best - accuracy), gain, gain_bn, len(gains[0]), outside)


def gains_by_seed(
    condition: Condition, curve: Curve, temperature: float, baseline: str, on: Metric = "test"
) -> NDArray[np.float64]:
    """Accuracy at T minus a baseline's ("plain" or "bn_one"), in points, by seed of both."""
    there, usual = curve.at_by_seed(temperature, on), condition.curve()
    bn = {} if usual is None else usual.by_seed(1.0, on)
    base = condition.plain_by_seed(on) if baseline == "plain" else bn
    return np.array([100 * (there[s] - base[s]) for s in sorted(there.keys() & base.keys())])
