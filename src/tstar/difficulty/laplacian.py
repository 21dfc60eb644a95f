"""Step 3b: the graph of classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def laplacian(W: NDArray[np.float64]) -> NDArray[np.float64]:
    """L = D − W, the unnormalized Laplacian, D_ii = Σ_{j≠i} W_ij; a class's weight to itself cancels.

    Args:
        W: (..., K, K) symmetric similarities.
    """
    L = -W
    diagonal = np.arange(W.shape[-1])
    L[..., diagonal, diagonal] = 0.0
    L[..., diagonal, diagonal] = -L.sum(axis=-1)
    return L
