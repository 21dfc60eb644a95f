"""Step 3a: how alike two classes are, seen from their neighborhoods."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def similarity(S: NDArray[np.float64]) -> NDArray[np.float64]:
    """W_ij = 1 − BrayCurtis(S_i, S_j) = Σ_c min(S_ic, S_jc), since rows of S sum to one.

    0 for classes whose neighborhoods share nothing, 1 for equal ones.

    Args:
        S: (..., K, K) row-normalized.
    """
    W = np.empty_like(S)
    for i in range(S.shape[-1]):
        W[..., i, :] = np.minimum(S[..., i : i + 1, :], S).sum(axis=-1)
    return W
