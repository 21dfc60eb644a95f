"""Squared distances that rank: exact integers for 8-bit data, a fixed order of float64 sums else.

Nothing here depends on the block size, on the number of threads or on the library behind a matrix
product, and every route of the search ends here. So all of them find the same neighbors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

CHUNK = 256  # 256 · 255² < 2²⁴: a float32 sum of that many 8-bit products is exact in any order
_FLOATS = 256  # rows of floats measured at a time
_ROWS = 64  # gathered at a time: they stay in the cache, and BLAS starts no threads for so few


class Exact:
    """Squared Euclidean distances between rows of one matrix; one copy per thread."""

    def __init__(self, data: NDArray[np.generic], squares: NDArray[np.int64] | None = None) -> None:
        self.data = data
        self.whole = data.dtype == np.uint8
        if self.whole:
            self._chunks = -(-data.shape[1] // CHUNK)
            self._bytes = np.empty((_ROWS, data.shape[1]), np.uint8)
            self._floats = np.zeros((_ROWS, self._chunks * CHUNK), np.float32)
            self.squares = self._lengths() if squares is None else squares

    def copy(self) -> Exact:
        """Another one with its own working memory, for another thread."""
        return Exact(self.data, self.squares if self.whole else None)

    def from_query(self, query: int) -> Callable[[NDArray[np.int64]], NDArray[np.generic]]:
        """The function rows ↦ ‖x_r − x_query‖²: int64 for 8-bit data, float64 otherwise."""
        if not self.whole:
            return partial(self._floating, query)
        q = self._load(np.array([query]))[0].copy()[:, :, None]
        return partial(self._integers, query, q)

    def _integers(
        self, query: int, q: NDArray[np.float32], rows: NDArray[np.int64]
    ) -> NDArray[np.generic]:
        """‖x‖² + ‖q‖² − 2x·q, every sum a whole number that float32 holds."""
        dots = np.empty(len(rows), np.int64)
        for start in range(0, len(rows), _ROWS):
            x = self._load(rows[start : start + _ROWS])
            chunks = np.matmul(x.transpose(1, 0, 2), q)[:, :, 0]
            dots[start : start + _ROWS] = chunks.sum(axis=0, dtype=np.int64)
        squares: NDArray[np.int64] = self.squares[rows] + self.squares[query] - 2 * dots
        return squares

    def _load(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Rows as float32, (n, chunks, CHUNK), filled up with zeros."""
        n = len(rows)
        np.take(self.data, rows, axis=0, out=self._bytes[:n], mode="clip")
        self._floats[:n, : self.data.shape[1]] = self._bytes[:n]
        return self._floats[:n].reshape(n, self._chunks, CHUNK)

    def _lengths(self) -> NDArray[np.int64]:
        squares = np.empty(len(self.data), np.int64)
        for start in range(0, len(self.data), _ROWS):
            x = self._load(np.arange(start, min(start + _ROWS, len(self.data))))
            squares[start : start + _ROWS] = np.einsum("rcd,rcd->rc", x, x).sum(
                axis=1, dtype=np.int64
            )
        return squares

    def _floating(self, query: int, rows: NDArray[np.int64]) -> NDArray[np.generic]:
        q, squares = self.data[query].astype(np.float64), np.empty(len(rows))
        for start in range(0, len(rows), _FLOATS):
            difference = self.data[rows[start : start + _FLOATS]].astype(np.float64)
            difference -= q
            difference *= difference
            squares[start : start + _FLOATS] = halving_sum(difference)
        return squares


def halving_sum(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum along the last axis by adding halves: elementwise additions in a fixed order."""
    width = values.shape[-1]
    while width > 1:
        half = (width + 1) // 2
        values[..., : width - half] += values[..., half:width]
        width = half
    total: NDArray[np.float64] = values[..., 0].copy()
    return total


def rank(squares: NDArray[np.generic], rows: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The k nearest rows, ties broken by position."""
    return rows[np.lexsort((rows, squares))[:k]]
