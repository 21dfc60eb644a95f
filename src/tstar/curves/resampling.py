"""How sure a mean over conditions is: data sets are drawn again, then conditions, then seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RESAMPLES = 2000


class Estimate(NamedTuple):
    """A mean and its 95 % percentile interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"


def estimate(
    values: Sequence[Array | float],
    names: Sequence[str],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """The mean over conditions, one vote each, and its interval.

    ``values`` has a number for each condition, or an array with one for each of its seeds; ``names`` its data set.
    """
    rng = np.random.default_rng(seed)
    each = [np.atleast_1d(np.asarray(value, float)) for value in values]
    drawn = np.stack(
        [v[rng.integers(len(v), size=(resamples, len(v)))].mean(axis=1) for v in each], axis=1
    )
    counts = weights(names, rng, resamples)
    means = (counts * drawn).sum(axis=1) / counts.sum(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return Estimate(float(np.mean([v.mean() for v in each])), float(low), float(high))


def weights(names: Sequence[str], rng: np.random.Generator, resamples: int = RESAMPLES) -> Array:
    """(resamples, conditions) how often each condition counts: data sets are drawn, then their conditions.

    Data sets are what a new user brings. With fewer than three of them conditions are drawn alone.
    """
    sets = clusters(names)
    if len(sets) < 3:
        sets = [np.arange(len(names))]
    found = np.zeros((resamples, len(names)))
    drawn = rng.multinomial(len(sets), np.full(len(sets), 1 / len(sets)), size=resamples)
    for members, times in zip(sets, drawn.T, strict=True):
        # A set that is drawn t times draws its m conditions t·m times.
        found[:, members] = rng.multinomial(
            times * len(members), np.full(len(members), 1 / len(members))
        )
    return found


def data_sets(facts: Mapping[str, Any]) -> frozenset[str]:
    """The data that a condition's samples come from, whatever their size: ``a_32+b_96`` → {a, b}."""
    return frozenset(part.partition("_")[0] for part in str(facts["dataset"]).split("+"))


def clusters(names: Sequence[str]) -> list[NDArray[np.int64]]:
    """The places of names that share data, directly or through a joined set: what is drawn when resampling."""
    groups: list[tuple[set[str], list[int]]] = []
    for place, name in enumerate(names):
        own, members = set(data_sets({"dataset": name})), [place]
        apart = []
        for parts, places in groups:
            if parts & own:
                own |= parts
                members = places + members
            else:
                apart.append((parts, places))
        groups = [*apart, (own, members)]
    return [np.array(sorted(places)) for _, places in groups]
