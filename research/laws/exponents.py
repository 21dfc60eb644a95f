"""How the best temperature moves with one quantity, and where training gets too hot.

A power law T = a_g·x^b is fitted by accuracy and not by peaks: for a given exponent b each group g of
conditions that differ in x alone gets the a_g at which its mean validation accuracy is highest, and b
is the exponent at which these add up to the most. A flat plateau then counts for little and a sharp
peak for much, as it should.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tstar.curves import Curve
from tstar.curves.reading import Metric
from tstar.curves.resampling import clusters
from tstar.errors import TstarError

Array = NDArray[np.float64]
_EXPONENTS = np.linspace(-1.0, 2.0, 121)
_LEVELS = np.geomspace(1e-3, 4096, 512)  # of a_g·x̄^b, the temperature at the group's middle
_RESAMPLES = 500


@dataclass(frozen=True)
class Exponent:
    """b of T ∝ x^b, its 95 % interval over groups, and the accuracy (fraction) it is worth.

    ``profile`` is the mean best accuracy at every exponent of ``grid``.
    """

    value: float
    low: float
    high: float
    groups: int
    profile: Array
    grid: Array


def shared_exponent(
    found: Sequence[Curve], variable: str, *, on: Metric = "val", seed: int = 0
) -> Exponent:
    """The common exponent of ``variable`` over groups of conditions that differ in it alone.

    The interval resamples data sets, with all their groups.
    """
    groups = grouped(found, variable)
    if not groups:
        raise TstarError(f"No conditions differ in {variable!r} alone.")
    gains = np.stack([_group_profile(group, variable, on) for group in groups])
    names = [str(group[0].facts["dataset"]) for group in groups]
    members = clusters(names)
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(_RESAMPLES):
        chosen = np.concatenate([members[i] for i in rng.integers(len(members), size=len(members))])
        drawn.append(_EXPONENTS[np.argmax(gains[chosen].mean(axis=0))])
    low, high = np.quantile(drawn, [0.025, 0.975])
    mean: Array = gains.mean(axis=0)
    best = float(_EXPONENTS[np.argmax(mean)])
    return Exponent(best, float(low), float(high), len(groups), mean, _EXPONENTS)


def grouped(found: Sequence[Curve], variable: str) -> list[list[Curve]]:
    """Conditions with at least two values of ``variable``, all other facts equal."""
    groups: dict[tuple[tuple[str, str], ...], list[Curve]] = {}
    for case in found:
        others = sorted(
            (k, repr(v)) for k, v in case.facts.items() if k not in (variable, "epochs")
        )  # epochs follow from steps
        groups.setdefault(tuple(others), []).append(case)
    return [g for g in groups.values() if len({c.facts[variable] for c in g}) > 1]


def _group_profile(group: Sequence[Curve], variable: str, on: Metric) -> Array:
    """Best mean accuracy of a group at every exponent."""
    x = np.log([float(case.facts[variable]) for case in group])
    x -= x.mean()
    # ln T of (exponent, level, condition)
    lnT = np.log(_LEVELS)[None, :, None] + _EXPONENTS[:, None, None] * x
    total = np.zeros(lnT.shape[:2])
    for i, case in enumerate(group):
        values = case.matched().means(on)
        total += np.interp(lnT[..., i], np.log(case.temperatures), values)
    best: Array = total.max(axis=1) / len(group)
    return best


def too_hot(case: Curve, share: float = 0.5, on: Metric = "test") -> float | None:
    """The cliff: the T above the best one where ``share`` of the accuracy above chance is lost.

    Linear in ln T between grid points; ``None`` where the grid ends before.
    """
    case = case.matched()
    values = case.means(on)
    chance = 1 / float(case.facts["num_classes"])
    peak = int(np.argmax(values))
    level = values[peak] - share * (values[peak] - chance)
    x = np.log(case.temperatures)
    for i in range(peak, len(values) - 1):
        if values[i + 1] < level:
            part = (values[i] - level) / (values[i] - values[i + 1])
            return float(np.exp(x[i] + part * (x[i + 1] - x[i])))
    return None
