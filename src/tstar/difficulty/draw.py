"""Which samples of each class are looked at: a function of the seed and of positions only."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def draw(
    codes: NDArray[np.int64], samples: int, seed: int, repeat: int = 0
) -> list[NDArray[np.int64]]:
    """Up to ``samples`` positions of every class, in the order of the class codes.

    Every position of the data gets one random 64-bit key; a class takes its smallest keys. So a
    position's key depends on the seed and the position alone: renaming classes, or more data after
    the last sample, changes nothing about it. The raw bits of PCG64 are the same in every NumPy.

    Args:
        codes: (N,) the class of each sample, as 0 … K−1.
        samples: m, the most that a class gives; a smaller class gives all it has.
        seed: of the keys.
        repeat: which of several independent draws of the same seed.
    """
    samples = min(samples, len(codes))
    keys = np.random.PCG64(np.random.SeedSequence((seed, repeat))).random_raw(len(codes))
    by_key = np.argsort(keys, kind="stable")
    by_class = by_key[np.argsort(codes[by_key], kind="stable")]
    starts = np.searchsorted(codes[by_class], np.arange(codes.max() + 2))
    return [np.sort(by_class[start : min(start + samples, end)]) for start, end in pairwise(starts)]
