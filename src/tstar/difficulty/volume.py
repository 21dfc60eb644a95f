"""The Parzen box around a sample and its neighbours, in logarithms."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FLOOR = 1e-4  # the smallest volume of the reference implementation, against a division by zero
_BLOCK = 1 << 22  # elements gathered at a time


def log_volumes(
    data: NDArray[np.generic],
    queries: NDArray[np.int64],
    neighbors: NDArray[np.int64],
    scale: float = 1.0,
) -> NDArray[np.float64]:
    r"""ln V for each query: V = max(Π_d 2·max_j \|x_{j,d} − q_d\|, 1e-4).

    The product runs over thousands of dimensions, where it underflows on [0, 1] pixels and overflows
    on 0–255 ones; its logarithm does neither.

    Args:
        data: (N, D).
        queries: (Q,) positions of the samples.
        neighbors: (Q, k) positions of their neighbours.
        scale: by which data are multiplied first (1/255 for 8-bit pixels).
    """
    dimensions = data.shape[1]
    out = np.empty(len(queries))
    step = max(1, _BLOCK // (dimensions * neighbors.shape[1]))
    for start in range(0, len(queries), step):
        block = slice(start, start + step)
        here = data[queries[block]].astype(np.float64)
        reach = np.zeros_like(here)
        for column in neighbors[block].T:
            np.maximum(reach, np.abs(data[column] - here), out=reach)
        reach *= 2 * scale
        with np.errstate(divide="ignore"):  # a side of length 0 makes the volume 0: floored below
            out[block] = np.log(reach).sum(axis=1)
    return np.maximum(out, math.log(FLOOR))
