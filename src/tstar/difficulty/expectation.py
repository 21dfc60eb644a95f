"""Step 1 and 2: how often the neighbors of one class belong to another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_TINY = 1e-290  # keeps a resample without the heaviest samples from summing to nothing


def sample_weights(
    log_volumes: NDArray[np.float64], owners: NDArray[np.int64], num_classes: int
) -> NDArray[np.float64]:
    """1/V of each drawn sample, relative to the largest of its class.

    A row of S is normalized in the end, so a factor common to a class does not matter: taking out
    its largest 1/V keeps every weight in [0, 1] and one of them at exactly 1.
    """
    least = np.full(num_classes, np.inf)
    np.minimum.at(least, owners, log_volumes)
    weights: NDArray[np.float64] = np.maximum(np.exp(least[owners] - log_volumes), _TINY)
    return weights


def expectation(
    neighbor_codes: NDArray[np.int64],
    owners: NDArray[np.int64],
    weights: NDArray[np.float64],
    num_classes: int,
) -> NDArray[np.float64]:
    """S (K×K), rows summing to one: S_ij = E over samples of class i of p(class j | sample).

    p(j | x) is the share of class j among the k neighbors of x, divided by the box volume V(x).

    Args:
        neighbor_codes: (Q, k) the class of each neighbor.
        owners: (Q,) the class of each sample.
        weights: (Q,) 1/V up to a factor for each class (:func:`sample_weights`), times how often
            the sample counts.
        num_classes: K.
    """
    cells = owners[:, None] * num_classes + neighbor_codes
    sums = np.bincount(
        cells.ravel(),
        weights=np.repeat(weights, neighbor_codes.shape[1]),
        minlength=num_classes * num_classes,
    ).reshape(num_classes, num_classes)
    rows: NDArray[np.float64] = sums / sums.sum(axis=1, keepdims=True)
    return rows
