r"""The k nearest neighbors of some rows among all rows of a matrix, exactly.

Short sketches z = Vᵀ(x − c) of all rows, with V (D×p) orthonormal, are never farther apart than the
rows: ‖z_x − z_q‖ ≤ ‖x − q‖. So one product of sketches gives a lower bound of every distance. The
few rows of the smallest bounds are measured exactly, and the k-th of these distances is a limit:
what has a larger bound is farther away, and the rest is measured exactly too. Any V is correct; the
leading principal directions rule out most. If sketches rule out too little, the rows themselves, in
float32, take their place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tstar.text import tracked

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Ints = NDArray[np.int64]
_UNIT = 2.0**-24  # float32's unit roundoff
_DIRECTIONS = 160  # p
_BASIS = 1 << 24  # numbers of the rows that V is computed from, at most so many …
_MOST_ROWS = 4096  # … and so many rows
_PIECE = 512  # products for a sketch are summed in pieces of this length: bounds their rounding
_WHOLE = 1024  # float32 sums of so many products of bytes are exact: 1024·128² = 2²⁴
_TILE = 1 << 21  # numbers converted to float32 at a time
_GATHERED = 1 << 18  # numbers measured at a time: they stay in the cache
_SCORES = 1 << 24  # bounds held at a time
_GROUP = 16  # bounds are first looked at through the minimum of so many
_MARGIN = 24  # groups looked at besides k
_FUTILE = 0.03  # sketches that leave more than this share of the rows are given up
_DUST = 1e-30  # more than what products too small for float32 add up to


def nearest(data: NDArray[Any], queries: Ints, k: int, *, sketched: bool = True) -> Ints:
    """(Q, k) positions of the nearest rows, nearest first, ties broken by position.

    The query itself is never among its neighbors; a duplicate of it is.

    ``data`` are (N, D) numbers with N > k, ``queries`` (Q,) positions. ``sketched`` (whether
    sketches are tried) does not change the answer.

    >>> nearest(np.array([[0.0], [1.0], [3.0], [7.0]]), np.array([2, 3]), 2)
    array([[1, 0],
           [2, 1]])
    """
    rows = Vectors(data)
    bounds = Bounds(rows, sketched and data.shape[1] > 2 * _DIRECTIONS)
    step = min(len(queries), max(1, _SCORES // max(data.shape)))
    scores = np.empty((step, -(-len(data) // _GROUP) * _GROUP), np.float32)
    neighbors = np.empty((len(queries), k), np.int64)
    starts = range(0, len(queries), step)
    for start in tracked(starts, "csg: parts of the samples compared", len(starts)):
        some = queries[start : start + step]
        bounds.score(some, scores)
        kth = [_kth(rows, query, row, k) for query, row in zip(some, scores, strict=False)]
        near = scores[: len(some)] <= bounds.limits(some, np.sqrt(kth))[:, None]
        if bounds.sketched and near.mean() > _FUTILE:
            return nearest(data, queries, k, sketched=False)
        for i, query in enumerate(some):
            left = np.flatnonzero(near[i])
            order = np.argsort(rows.distances(query, left), kind="stable")
            neighbors[start + i] = left[order[:k]]
    return neighbors


def _kth(rows: Vectors, query: np.int64, scores: F32, k: int) -> float:
    """The k-th squared distance among some rows that are likely to be near."""
    least = scores.reshape(_GROUP, -1).min(axis=0)
    first = min(k + _MARGIN, len(least)) - 1
    level = np.partition(least, first)[first] if first >= k else np.finfo(np.float32).max
    squares = rows.distances(query, np.flatnonzero(scores <= level))
    return float(np.partition(squares, k - 1)[k - 1])


class Vectors:
    """Rows in float32, centered and scaled by a power of two, and their exact distances.

    Rows of bytes are whole numbers x − 128.
    """

    def __init__(self, data: NDArray[Any]) -> None:
        self.bytes = data.dtype.itemsize == 1
        if self.bytes and data.dtype != np.uint8:
            data = data.view(np.uint8) ^ np.uint8(128)
        self.data = data
        if not self.bytes:
            self.center = data[:: max(1, len(data) // 1024)].mean(axis=0, dtype=np.float64)
            largest = max(float(data.max()), -float(data.min()))
            # no square leaves float64's range, however large or small the numbers are
            self.scale = 2.0 ** -max(-1000, int(np.frexp(largest)[1]))
        step = max(1, _TILE // data.shape[1])
        self.tiles = [slice(start, start + step) for start in range(0, len(data), step)]
        self.squares = np.concatenate([self._squares(tile) for tile in self.tiles])

    def __getitem__(self, where: Any) -> F32:
        if self.bytes:
            shifted: NDArray[np.uint8] = self.data[where] ^ np.uint8(128)
            return shifted.view(np.int8).astype(np.float32)
        return np.asarray((self.data[where] - self.center) * self.scale, np.float32)

    def _squares(self, where: slice) -> F64:
        x = self[where]
        return np.asarray(np.einsum("nd,nd->n", x, x, dtype=np.float64))

    def distances(self, query: np.int64, rows: Ints) -> F64:
        """‖x − q‖² of some rows, exact if they are bytes."""
        out = np.empty(len(rows))
        step = max(1, _GATHERED // self.data.shape[1])
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            out[start : start + step] = (self._whole if self.bytes else self._real)(query, part)
        return out

    def _whole(self, query: np.int64, rows: Ints) -> F64:
        x, q, products = self[rows], self[query], np.zeros(len(rows))
        for start in range(0, len(q), _WHOLE):
            products += x[:, start : start + _WHOLE] @ q[start : start + _WHOLE]
        return np.asarray(self.squares[rows] + self.squares[query] - 2 * products)

    def _real(self, query: np.int64, rows: Ints) -> F64:
        x = (self.data[rows].astype(np.float64) - self.data[query]) * self.scale
        return np.asarray(np.square(x, out=x).sum(axis=1))


class Bounds:
    """float32 vectors, with their squares, whose distances are lower bounds of the rows'."""

    def __init__(self, rows: Vectors, sketched: bool) -> None:
        self.rows, self.sketched, self.error = rows, sketched, 2 * _UNIT
        if not sketched:
            return
        (N, D), V = rows.data.shape, directions(rows)
        p = V.shape[1]
        self.sketches = np.empty((N, p + 1), np.float32)
        for tile in rows.tiles:
            x, z = rows[tile], self.sketches[tile, :p]
            np.matmul(x[:, :_PIECE], V[:_PIECE], out=z)
            for start in range(_PIECE, D, _PIECE):
                z += x[:, start : start + _PIECE] @ V[start : start + _PIECE]
            self.sketches[tile, p] = np.einsum("np,np->n", z, z, dtype=np.float64)
        # each of p numbers is a sum of D/512 sums of 512 products, in any order
        self.error = 1.01 * (_PIECE + D // _PIECE + 4) * _UNIT * p**0.5

    def vectors(self, where: Any) -> F32:
        """Some of the vectors; their squared lengths are in the last column."""
        if self.sketched:
            return np.asarray(self.sketches[where])
        return np.column_stack([self.rows[where], self.rows.squares[where].astype(np.float32)])

    def score(self, queries: Ints, out: F32) -> None:
        """‖z_x‖² − 2·z_x·z_q of each query and row; infinity for the query itself."""
        N, left = len(self.rows.data), -2 * self.vectors(queries)
        left[:, -1] = 1
        for tile in self.rows.tiles:
            end = min(tile.stop, N)
            np.matmul(left, self.vectors(tile).T, out=out[: len(queries), tile.start : end])
        out[:, N:] = np.inf
        out[np.arange(len(queries)), queries] = np.inf

    def limits(self, queries: Ints, distances: Any) -> F32:
        """The largest score that a row within a distance d of its query can have.

        Such a row and the query have together at most the length a = 2‖q‖ + d. A vector is wrong by
        at most ``error`` times its row's length; a score, a float32 sum of n products, by n·2⁻²³·a².
        """
        if not self.sketched:
            width, own = self.rows.data.shape[1], self.rows.squares[queries]
        else:
            width, own = self.sketches.shape[1], self.sketches[queries, -1].astype(np.float64)
        distances = distances * (1 + 2.0**-30)
        a = 2 * np.sqrt(self.rows.squares[queries]) + distances
        most = (distances + self.error * a) ** 2 - own + (width + 4) * 2 * _UNIT * a**2 + _DUST
        return np.asarray(most, np.float32)


def directions(rows: Vectors) -> F32:
    """V (D×p): about the leading principal directions, by two power iterations from p rows."""
    N, D = rows.data.shape
    some = rows[slice(None, None, max(1, N // _MOST_ROWS, N * D // _BASIS))]
    V = some[:_DIRECTIONS].T
    for _ in range(2):
        V = some.T @ (some @ V)
    return np.ascontiguousarray(np.linalg.qr(V.astype(np.float64))[0], dtype=np.float32)
