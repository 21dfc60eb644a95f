"""How sure an average over conditions is: the one home of bootstrap intervals.

Data sets are drawn again, then their conditions, then seeds: data sets are what a new user brings.
With fewer than three data sets there is nothing to draw, and conditions are drawn alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RESAMPLES = 2000
FEWEST_SETS = 3


class Estimate(NamedTuple):
    """A mean and its 95 % percentile interval."""

    value: float
    low: float
    high: float


def estimate(values: Sequence[Array], names: Sequence[str], *, seed: int = 0) -> Estimate:
    """The mean over conditions, one vote each, and its interval.

    ``values`` has an array for each condition, with a number for each of its seeds; ``names`` has
    its data set.
    """
    rng = np.random.default_rng(seed)
    drawn = [v[rng.integers(len(v), size=(RESAMPLES, len(v)))].mean(axis=1) for v in values]
    counts = weights(names, rng)
    means = (counts * np.stack(drawn, axis=1)).sum(axis=1) / counts.sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Estimate(float(np.mean([v.mean() for v in values])), float(low), float(high))


def what_is_drawn(names: Sequence[str]) -> str:
    """What an interval of :func:`estimate` is a bootstrap over, in words."""
    sets = len(clusters(names))
    if sets >= FEWEST_SETS:
        return f"{sets} data sets, their conditions and their seeds"
    few = "one data set" if sets == 1 else f"{sets} data sets"
    return (
        f"conditions and their seeds only: with {few}, how much data sets differ cannot be seen, "
        "and the interval is too narrow for a new one"
    )


def weights(names: Sequence[str], rng: np.random.Generator, resamples: int = RESAMPLES) -> Array:
    """(resamples, conditions): how often each condition counts."""
    sets = clusters(names)
    if len(sets) < FEWEST_SETS:
        sets = [np.arange(len(names))]
    found = np.zeros((resamples, len(names)))
    drawn = rng.multinomial(len(sets), np.full(len(sets), 1 / len(sets)), size=resamples)
    for members, times in zip(sets, drawn.T, strict=True):
        # A set that is drawn t times draws its m conditions t·m times.
        even = np.full(len(members), 1 / len(members))
        found[:, members] = rng.multinomial(times * len(members), even)
    return found


def clusters(names: Sequence[str]) -> list[NDArray[np.int64]]:
    """The places of names that share data, whatever their size: ``a_32+b_96`` is of a and b."""
    groups: list[tuple[set[str], list[int]]] = []
    for place, name in enumerate(names):
        own, members = {part.partition("_")[0] for part in name.split("+")}, [place]
        for group in [group for group in groups if group[0] & own]:
            groups.remove(group)
            own, members = own | group[0], members + group[1]
        groups.append((own, members))
    return [np.array(sorted(places)) for _, places in groups]
