"""The Parzen box around a sample and its neighbors, in logarithms."""

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
        neighbors: (Q, k) positions of their neighbors.
        scale: by which data are multiplied first (1/255 for 8-bit pixels).
    """
    dimensions = data.shape[1]
    out = np.empty(len(queries))
    step = max(1, _BLOCK // (dimensions * neighbors.shape[1]))
    whole = data.dtype == np.uint8
    with np.errstate(divide="ignore"):  # a side of length 0 makes the volume 0: floored below
        logs = np.log(np.arange(256.0) * (2 * scale)) if whole else None
        for start in range(0, len(queries), step):
            block = slice(start, start + step)
            reach = _reach(data, queries[block], neighbors[block])
            sides = np.log(reach.astype(np.float64) * (2 * scale)) if logs is None else logs[reach]
            out[block] = sides.sum(axis=1)
    return np.maximum(out, math.log(FLOOR))


def _reach(
    data: NDArray[np.generic], queries: NDArray[np.int64], neighbors: NDArray[np.int64]
) -> NDArray[np.generic]:
    r"""max_j \|x_{j,d} − q_d\| of each query, (Q, D): uint8 for 8-bit data, float64 otherwise."""
    here = data[queries]
    if data.dtype != np.uint8:
        here = here.astype(np.float64)
        reach = np.zeros_like(here)
        for column in neighbors.T:
            np.maximum(reach, np.abs(data[column] - here), out=reach)
        return reach
    low, high = here.copy(), here.copy()  # of the box that holds the sample and its neighbors
    for column in neighbors.T:
        rows = data[column]
        np.minimum(low, rows, out=low)
        np.maximum(high, rows, out=high)
    widest: NDArray[np.generic] = np.maximum(high - here, here - low)
    return widest
