"""The eigenvalues of a symmetric matrix, the same bits whatever the number of threads.

LAPACK's eigenvalues change in the last bits with the number of BLAS threads (seen at K = 400), and
csg promises the same value to the last bit. Here every operation is an elementwise one or a
sum along a row in NumPy's own fixed order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def spectrum(L: NDArray[np.float64]) -> Vector:
    """Eigenvalues of a symmetric (K, K) matrix, ascending, to about K·2⁻⁵²·‖L‖."""
    largest = float(np.abs(L).max())
    scale = 2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1.0  # so that no square overflows
    diagonal, off = _tridiagonal(L / scale)
    return _bisect(diagonal, off) * scale


def _tridiagonal(A: NDArray[np.float64]) -> tuple[Vector, Vector]:
    """Householder's reduction: the diagonal and off-diagonal of a similar tridiagonal matrix."""
    A = np.array(A, dtype=np.float64)
    K = len(A)
    off = np.zeros(max(K - 1, 0))
    for i in range(K - 2):
        x = A[i + 1 :, i].copy()
        norm = np.sqrt((x * x).sum())
        if norm == 0.0 or not x[1:].any():
            off[i] = x[0]
            continue
        off[i] = -np.copysign(norm, x[0])
        x[0] -= off[i]
        x /= np.sqrt((x * x).sum())
        rest = A[i + 1 :, i + 1 :]
        p = (rest * x).sum(axis=1)
        p -= x * (x * p).sum()
        rest -= 2.0 * (x[:, None] * p + p[:, None] * x)
    if K > 1:
        off[K - 2] = A[K - 1, K - 2]
    return np.diagonal(A).copy(), off


def _bisect(diagonal: Vector, off: Vector) -> Vector:
    """All eigenvalues of a tridiagonal matrix at once, by counting those below each midpoint."""
    K = len(diagonal)
    reach = np.zeros(K)
    reach[:-1] += np.abs(off)
    reach[1:] += np.abs(off)
    low = np.full(K, (diagonal - reach).min())
    high = np.full(K, (diagonal + reach).max())
    scale = max(abs(low[0]), abs(high[0]))
    tiny = max(np.finfo(np.float64).tiny, np.finfo(np.float64).eps ** 2 * scale)
    squares = np.concatenate([[0.0], off * off])
    wanted = np.arange(K)
    middle = low + (high - low) / 2
    while np.any((low < middle) & (middle < high)):
        below = np.zeros(K, dtype=np.int64)
        pivot = np.ones(K)
        for d, square in zip(diagonal, squares, strict=True):
            pivot = (d - middle) - square / pivot
            pivot[np.abs(pivot) < tiny] = -tiny
            below += pivot < 0
        larger = below > wanted
        high = np.where(larger, middle, high)
        low = np.where(larger, low, middle)
        if (high - low).max() <= 2.0**-54 * scale:
            break
        middle = low + (high - low) / 2
    return np.maximum.accumulate(low + (high - low) / 2)
