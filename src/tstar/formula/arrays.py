"""The equation for many conditions at once: the same columns as in :mod:`tstar.formula.equation`, with NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tstar.formula.coefficients import Coefficients

Array = NDArray[np.float64]


def column(coefficient: str, values: ArrayLike) -> Array:
    """What a coefficient is multiplied by: α sqrt(M), β 1, γ ln csg, δ ln K."""
    x = np.asarray(values, dtype=float)
    found: Array
    if coefficient == "beta":
        found = np.ones_like(x)
    else:
        found = np.sqrt(x) if coefficient == "alpha" else np.log(x)
    return found


def temperatures(c: Coefficients, M: ArrayLike, K: ArrayLike, csg: ArrayLike) -> Array:
    """clip(α·sqrt(M) + β + γ·ln csg + δ·ln K); NaN where a csg that the set uses is NaN."""
    T = c.alpha * column("alpha", M) + c.beta
    if c.delta is not None:
        T = T + c.delta * column("delta", K)
    if c.gamma is not None:
        T = T + c.gamma * column("gamma", csg)
    clipped: Array = np.clip(T, c.minimum, c.maximum)
    return clipped
