"""Squared distances that rank: exact integers for 8-bit data, a fixed order of float64 sums else.

Nothing here depends on the block size, on the number of threads or on the library behind a matrix
product, and every route of the search ends here. So all of them find the same neighbors.
"""

from __future__ import annotations

import os
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.neighbors.pairs import Pairs

CHUNK = 256  # 256 · 255² < 2²⁴: a float32 sum of that many 8-bit products is exact in any order
MIDDLE = 128  # 8-bit rows are measured as x − 128, which is int8 ...
_SHIFTED = 1024  # ... so that 1024 · 128² = 2²⁴ products can be summed
_FLOATS = 256  # rows of floats measured at a time
_BYTES = 1 << 18  # of 8-bit rows gathered at a time: they stay in the cache
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
            width = data.shape[1]
            self._rows = max(1, _BYTES // (width * _EVEN)) * _EVEN
            self._bytes = np.zeros((self._rows, width), np.uint8)
            self._chunks = -(-width // _SHIFTED)
            self._depth = min(_SHIFTED, width)
            if not int8 or squares is None:
                self._floats = np.zeros((self._rows, self._chunks * self._depth), np.float32)
            self.squares = self._lengths() if squares is None else squares

    def copy(self) -> Exact:
        """Another one with its own working memory, for another thread."""
        return Exact(self.data, self.squares if self.whole else None, self.int8)

    def distances(self, queries: NDArray[np.int64], pairs: Pairs) -> NDArray[np.generic]:
        """‖x_row − x_query‖² of each pair: int64 for 8-bit data, float64 otherwise."""
        if not self.whole:
            return self._floating(queries, pairs)
        products = np.empty(len(pairs.rows), np.int64)
        (self._int8_products if self.int8 else self._products)(queries, pairs, products)
        # ‖x‖² + ‖q‖² − 2x·q, every sum a whole number that its type holds
        products *= -2
        products += self.squares[pairs.rows]
        products += self.squares[queries][pairs.who]
        return products

    def _products(self, queries: NDArray[np.int64], pairs: Pairs, out: NDArray[np.int64]) -> None:
        """(x − 128)·(q − 128) of each pair, by float32 products."""
        for i, start, stop in pairs.parts(self._rows):
            q = self._wide(self._load(queries[i : i + 1]))[0].copy()
            x = self._wide(self._load(pairs.rows[start:stop]))
            chunks = np.matmul(x.transpose(1, 0, 2), q[:, :, None])[:, :, 0]
            out[start:stop] = chunks.sum(axis=0, dtype=np.int64)

    def _int8_products(
        self, queries: NDArray[np.int64], pairs: Pairs, out: NDArray[np.int64]
    ) -> None:
        """The same by int8 products."""
        import torch

        left = torch.from_numpy((self.data[queries] ^ np.uint8(MIDDLE)).view(np.int8))
        right = torch.from_numpy(self._bytes.view(np.int8)).T
        views = [right[:, : n * _EVEN] for n in range(self._rows // _EVEN + 1)]
        rows = pairs.rows
        for i, start, stop in pairs.parts(self._rows):
            self._load(rows[start:stop])
            n = stop - start
            dots = torch._int_mm(left[i : i + 1], views[-(-n // _EVEN)])
            out[start:stop] = dots.numpy()[0, :n]

    def _load(self, rows: NDArray[np.int64]) -> NDArray[np.int8]:
        """x − 128 of some rows, in working memory."""
        here = self._bytes[: len(rows)]
        self.data.take(rows, axis=0, out=here, mode="clip")
        np.bitwise_xor(here, MIDDLE, out=here)
        return here.view(np.int8)

    def _wide(self, x: NDArray[np.int8]) -> NDArray[np.float32]:
        """Rows as float32, (n, chunks, depth), filled up with zeros."""
        self._floats[: len(x), : x.shape[1]] = x
        return self._floats[: len(x)].reshape(len(x), self._chunks, self._depth)

    def _lengths(self) -> NDArray[np.int64]:
        squares = np.empty(len(self.data), np.int64)
        for start in range(0, len(self.data), self._rows):
            stop = min(start + self._rows, len(self.data))
            x = self._wide(self._load(np.arange(start, stop)))
            chunks = np.matmul(x[:, :, None, :], x[:, :, :, None])[:, :, 0, 0]
            squares[start:stop] = chunks.sum(axis=1, dtype=np.int64)
        return squares

    def _floating(self, queries: NDArray[np.int64], pairs: Pairs) -> NDArray[np.float64]:
        squares = np.empty(len(pairs.rows))
        for i, start, stop in pairs.parts(_FLOATS):
            difference = self.data[pairs.rows[start:stop]].astype(np.float64)
            difference -= self.data[queries[i]].astype(np.float64)
            difference *= difference
            squares[start:stop] = halving_sum(difference)
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
