"""Step 4: from the spectrum to one number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def cumulative_gradient(spectrum: NDArray[np.float64]) -> NDArray[np.float64]:
    """csg = Σ_i max_{j≤i} d_j, d_j = (λ_{j+1} − λ_j)/(K − j), j = 0 … K−2.

    0 for perfectly separated classes, K − 1 for identical ones.

    Args:
        spectrum: (..., K) eigenvalues, ascending.
    """
    K = spectrum.shape[-1]
    steps = np.diff(spectrum, axis=-1) / (K - np.arange(K - 1))
    total: NDArray[np.float64] = np.maximum.accumulate(steps, axis=-1).sum(axis=-1)
    return total
