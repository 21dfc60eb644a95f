"""Squared distances that rank: exact integers for 8-bit data, a fixed order of float64 sums else.

Nothing here depends on the block size, on the number of threads or on the library behind a matrix
product, and every route of the search ends here. So all of them find the same neighbors.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

CHUNK = 256  # 256 · 255² < 2²⁴: a float32 sum of that many 8-bit products is exact in any order
MIDDLE = 128  # 8-bit rows are measured as x − 128, which is int8 ...
_SHIFTED = 1024  # ... so that 1024 · 128² = 2²⁴ products can be summed
_FLOATS = 256  # rows of floats measured at a time
_ROWS = 64  # gathered at a time: they stay in the cache, and BLAS starts no threads for so few
_EVEN = 32  # int8 products are of so many rows or a multiple: few shapes to prepare for


class Exact:
    """Squared Euclidean distances between rows of one matrix; one copy per thread.

    With ``int8``, those of 8-bit rows come from int8 products. ``squares`` are ‖x − 128‖² of 8-bit rows.
    """

    def __init__(
        self,
        data: NDArray[np.generic],
        squares: NDArray[np.int64] | None = None,
        int8: bool = False,
    ) -> None:
        self.data, self.int8 = data, int8
        self.whole = data.dtype == np.uint8
        if self.whole:
            self._chunks = -(-data.shape[1] // _SHIFTED)
            self._bytes = np.zeros((_ROWS, data.shape[1]), np.uint8)
            self._floats = np.zeros((_ROWS, self._chunks * _SHIFTED), np.float32)
            self.squares = self._lengths() if squares is None else squares

    def copy(self) -> Exact:
        """Another one with its own working memory, for another thread."""
        return Exact(self.data, self.squares if self.whole else None, self.int8)

    def from_query(self, query: int) -> Callable[[NDArray[np.int64]], NDArray[np.generic]]:
        """The function rows ↦ ‖x_r − x_query‖²: int64 for 8-bit data, float64 otherwise."""
        if not self.whole:
            return partial(self._floating, query)
        q = self._load(np.array([query])).copy()
        dots = (
            partial(self._int8_dots, q)
            if self.int8
            else partial(self._dots, self._wide(q)[0].copy())
        )
        return partial(self._integers, query, dots)

    def _integers(
        self,
        query: int,
        dots: Callable[[NDArray[np.int8]], NDArray[np.generic]],
        rows: NDArray[np.int64],
    ) -> NDArray[np.generic]:
        """‖x‖² + ‖q‖² − 2x·q, every sum a whole number that its type holds."""
        products = np.empty(len(rows), np.int64)
        for start in range(0, len(rows), _ROWS):
            some = rows[start : start + _ROWS]
            products[start : start + _ROWS] = dots(self._load(some))
        squares: NDArray[np.int64] = self.squares[rows] + self.squares[query] - 2 * products
        return squares

    def _dots(self, q: NDArray[np.float32], x: NDArray[np.int8]) -> NDArray[np.generic]:
        chunks = np.matmul(self._wide(x).transpose(1, 0, 2), q[:, :, None])[:, :, 0]
        total: NDArray[np.generic] = chunks.sum(axis=0, dtype=np.int64)
        return total

    def _int8_dots(self, q: NDArray[np.int8], x: NDArray[np.int8]) -> NDArray[np.generic]:
        import torch

        filled = self._bytes[: -(-len(x) // _EVEN) * _EVEN].view(np.int8)
        dots = torch._int_mm(torch.from_numpy(q), torch.from_numpy(filled).T)
        return dots[0, : len(x)].numpy()

    def _load(self, rows: NDArray[np.int64]) -> NDArray[np.int8]:
        """x − 128 of some rows, in working memory."""
        here = self._bytes[: len(rows)]
        self.data.take(rows, axis=0, out=here, mode="clip")
        np.bitwise_xor(here, MIDDLE, out=here)
        return here.view(np.int8)

    def _wide(self, x: NDArray[np.int8]) -> NDArray[np.float32]:
        """Rows as float32, (n, chunks, _SHIFTED), filled up with zeros."""
        self._floats[: len(x), : x.shape[1]] = x
        return self._floats[: len(x)].reshape(len(x), self._chunks, _SHIFTED)

    def _lengths(self) -> NDArray[np.int64]:
        squares = np.empty(len(self.data), np.int64)
        for start in range(0, len(self.data), _ROWS):
            x = self._wide(self._load(np.arange(start, min(start + _ROWS, len(self.data)))))
            chunks = np.matmul(x[:, :, None, :], x[:, :, :, None])[:, :, 0, 0]
            squares[start : start + _ROWS] = chunks.sum(axis=1, dtype=np.int64)
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


@cache
def int8_is_faster() -> bool:
    """Whether int8 products are faster than float32 ones: where oneDNN may use VNNI.

    ``torch._int_mm`` is then several times faster, and many times slower where not. The instruction
    set decides, since a busy machine can fool a measurement.
    """
    import torch

    names = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
    limited = any(os.environ.get(name, "ALL").upper() not in ("ALL", "DEFAULT") for name in names)
    has_vnni = getattr(torch.cpu, "_is_vnni_supported", lambda: False)
    return not limited and hasattr(torch, "_int_mm") and bool(has_vnni())


@cache
def int8_is_exact() -> bool:
    """Whether int8 products come out right: without VNNI, oneDNN adds pairs of them in 16 bits, which may overflow."""
    import torch

    if not hasattr(torch, "_int_mm"):
        return False
    high, low = (
        torch.full((64, 96), 127, dtype=torch.int8),
        torch.full((64, 96), -128, dtype=torch.int8),
    )
    return all(
        bool((torch._int_mm(a, b.T) == int(a[0].long() @ b[0].long())).all())
        for a, b in ((high, low), (high, high), (low, low), (low, high))
    )
