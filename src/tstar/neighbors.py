r"""The k nearest neighbors of some rows among all rows of a matrix, exactly.

One search: lower bounds of all distances by one product of short float32 sketches; the rows of the
smallest bounds are measured exactly, which gives a distance that the k-th neighbor cannot exceed;
every row whose bound does not exceed that is measured too. What the bounds rule out is provably
farther away, so the answer is that of a full search, whatever the block size or the BLAS library.

A sketch splits x − c into V·z, z = Vᵀ(x − c) with V (D×p) orthonormal, and a rest of length r. Then

    ‖x − q‖² ≥ ‖z_x − z_q‖² + (r_x − r_q)²,

a squared distance of the (p+1)-vectors (z, r). Any V is correct; leading principal directions make
the bound tight. If sketches rule out too little, the rows themselves, in float32, take their place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Ints = NDArray[np.int64]
Pairs = list[NDArray[Any]]  # queries, rows and squared distances
_UNIT = 2.0**-24  # float32's unit roundoff
_MIDDLE = 128  # 8-bit rows are measured as x − 128 …
_CHUNK = 1024  # … and 1024 · 128² = 2²⁴: float32 sums of so many products are exact in any order
_WIDTH = 128  # directions of a sketch
_SHORT = 64  # rows of at most this many dimensions need no sketch
_DEPTH = 256  # products for sketches are summed in pieces of this length: bounds their rounding
_BASIS = 4096  # rows that the principal directions are computed from
_TILE = 1 << 21  # numbers converted to float32 at a time
_BYTES = 1 << 18  # of rows gathered for exact distances at a time: they stay in the cache
_SCORES = 64 << 20  # bytes of lower bounds held at a time
_GROUP = 16  # lower bounds are first looked at through the minimum of so many
_MARGIN = 14  # groups looked at besides those of the k neighbors and the sample itself
_MOST = 1 << 21  # pairs of a query and a row held at a time
_FUTILE = 0.1  # sketches that leave more than this share of the rows are given up
_DUST = 1e-30  # more than what products too small for float32 can add up to


def nearest(
    data: NDArray[Any], queries: Ints, k: int, *, block: int | None = None, sketched: bool = True
) -> Ints:
    """(Q, k) positions of the nearest rows, nearest first, ties broken by position.

    The query itself is never among its neighbors; a duplicate of it is.

    ``data`` are (N, D) numbers with N > k, ``queries`` (Q,) positions. ``block`` (queries handled at
    a time) and ``sketched`` (whether sketches are tried) do not change the answer.

    >>> nearest(np.array([[0.0], [1.0], [3.0], [7.0]]), np.array([2, 3]), 2)
    array([[1, 0],
           [2, 1]])
    """
    frame = Frame(data)
    bounds = (sketched and sketch(frame)) or whole_rows(frame)
    wide = 4 * max(frame.data.shape)  # bytes of a query's scores, or of the query itself
    block = min(block or max(1, _SCORES // wide), len(queries))
    scores = np.empty((block, -(-len(data) // _GROUP) * _GROUP), np.float32)
    found, start = np.empty((len(queries), k), np.int64), 0
    while start < len(queries):
        some = queries[start : start + block]
        bounds.scores(some, scores[: len(some)])
        ranked = _rank(frame, bounds, some, k, scores[: len(some)])
        if ranked is None:  # the sketches rule out too little
            bounds = whole_rows(frame)
            continue
        found[start : start + block] = ranked
        start += block
    return found


class Frame:
    """Rows as they are seen: (x − center)·scale in float32, and their exact squared lengths.

    Columns that do not vary are left out. Rows of bytes are whole numbers x − 128. Other numbers
    are centered, and scaled by a power of two, so that float32 is wide enough.
    """

    def __init__(self, data: NDArray[Any]) -> None:
        varies = data.min(axis=0) != data.max(axis=0)
        varies[0] = True
        data = data if varies.all() else data[:, varies]
        self.whole = data.dtype.itemsize == 1
        if self.whole and data.dtype != np.uint8:
            data = data.view(np.uint8) ^ np.uint8(_MIDDLE)
        self.data, self.center, self.scale = data, np.float64(_MIDDLE), 1.0
        if not self.whole:
            some = data[:: max(1, len(data) // 1024)]
            self.center = some.mean(axis=0, dtype=np.float64)
            largest = max(float(data.max()), -float(data.min()), float(np.finfo(np.float64).tiny))
            self.scale = float(2.0 ** -np.ceil(np.log2(largest)))
        step = max(1, _TILE // data.shape[1])
        self.tiles = [slice(i, i + step) for i in range(0, len(data), step)]
        self.squares = np.concatenate([self._lengths(tile) for tile in self.tiles])

    def rows(self, where: Any) -> F32:
        """Some rows, exact if they are bytes; each number is rounded twice otherwise."""
        if self.whole:
            shifted: NDArray[np.uint8] = self.data[where] ^ np.uint8(_MIDDLE)
            return shifted.view(np.int8).astype(np.float32)  # x − 128
        return np.asarray((self.data[where] - self.center) * self.scale, np.float32)

    def distances(self, queries: Ints, who: Ints, rows: Ints) -> NDArray[Any]:
        """‖x_row − x_query‖² of pairs in the order of ``who``: int64 for bytes, else float64."""
        out = np.empty(len(rows), np.int64 if self.whole else np.float64)
        step = max(1, _BYTES // self.data[0].nbytes)
        edges = np.searchsorted(who, np.arange(len(queries) + 1))
        measure = self._integers if self.whole else self._reals
        for i, query in enumerate(queries):
            for start in range(edges[i], edges[i + 1], step):
                part = slice(start, min(start + step, edges[i + 1]))
                out[part] = measure(query, rows[part])
        return out

    def _integers(self, query: np.int64, rows: Ints) -> Ints:
        x, q = self.rows(rows), self.rows(query)
        total = np.zeros(len(rows), np.int64)
        for start in range(0, len(q), _CHUNK):
            total += (x[:, start : start + _CHUNK] @ q[start : start + _CHUNK]).astype(np.int64)
        return np.asarray(self.squares[rows] + self.squares[query] - 2 * total)

    def _reals(self, query: np.int64, rows: Ints) -> F64:
        difference = self.data[rows].astype(np.float64) - self.data[query].astype(np.float64)
        return halving_sum(np.square(difference, out=difference))

    def _lengths(self, where: slice) -> NDArray[Any]:
        x = self.rows(where)
        if not self.whole:
            return np.asarray(np.einsum("nd,nd->n", x, x, dtype=np.float64))
        parts = (x[:, start : start + _CHUNK] for start in range(0, x.shape[1], _CHUNK))
        whole = [np.einsum("nd,nd->n", p, p).astype(np.int64) for p in parts]
        return np.asarray(np.sum(whole, axis=0))


def halving_sum(values: F64) -> F64:
    """The sum along the last axis by adding halves in place: additions in a fixed order."""
    width = values.shape[-1]
    while width > 1:
        half = (width + 1) // 2
        values[..., : width - half] += values[..., half:width]
        width = half
    return np.array(values[..., 0])


@dataclass(frozen=True)
class Bounds:
    """float32 vectors whose distances, less ``2·slack``, are lower bounds of those in a frame.

    ``vectors(where)`` gives some of the N vectors, of ``width`` numbers, and in the last column
    their squared lengths ``squares``; ``slack`` is how far a vector may be from its exact place.
    """

    vectors: Callable[[Any], F32]
    squares: NDArray[Any]
    width: int
    slack: float
    scale: float
    sketched: bool

    def scores(self, queries: Ints, out: F32) -> None:
        """s = ‖x‖² − 2x·q of each query and row, into (Q, N filled up to whole groups)."""
        N = len(self.squares)
        left, step = self.vectors(queries) * np.float32(-2), max(1, _TILE // self.width)
        left[:, -1] = 1
        out[:, N:] = np.inf
        for start in range(0, N, step):
            tile = slice(start, min(start + step, N))
            np.matmul(left, self.vectors(tile).T, out=out[:, tile])

    def most(self, queries: Ints, squared: NDArray[Any]) -> F32:
        r"""The largest score of a row within a squared distance: (d + 2·slack)² − ‖q‖² + rounding.

        A float32 sum of n products is wrong by at most n·2⁻²⁴/(1 − n·2⁻²⁴) times the sum of their
        absolute values, here 2‖x‖‖q‖ + ‖x‖², in any order and with or without fused operations.
        """
        length = np.sqrt(self.squares[queries].astype(np.float64))
        reach = np.sqrt(squared.astype(np.float64)) * self.scale * (1 + 1e-9) + 2 * self.slack
        longest = np.sqrt(float(self.squares.max()))
        x = np.minimum(longest, length + reach)  # no longer row is so near
        rounding = (self.width + 6) * _UNIT * 1.01 * (2 * x * length + x * x) + _DUST
        score = reach**2 - length**2 * (1 - 1e-9) + rounding
        return np.asarray(np.nextafter(score.astype(np.float32), np.float32(np.inf)))


def whole_rows(frame: Frame) -> Bounds:
    """The rows themselves."""
    rounding = 0.0 if frame.whole else 3 * _UNIT * float(np.sqrt(frame.squares.max()))

    def vectors(where: Any) -> F32:
        return np.column_stack([frame.rows(where), frame.squares[where].astype(np.float32)])

    return Bounds(vectors, frame.squares, frame.data.shape[1], rounding, frame.scale, False)


def sketch(frame: Frame) -> Bounds | None:
    """(z, r) of every row; ``None`` for short rows, few rows, and rows that are all the same."""
    N, D = frame.data.shape
    p = min(_WIDTH, D // 2, N // 4, _TILE // D)
    if D <= _SHORT or p < 1:
        return None
    basis = min(_BASIS, 8 * _TILE // D)
    V = principal_directions(frame.rows(slice(None, None, -(-N // basis))), p)
    if not (p := V.shape[1]):
        return None
    gram = V.T.astype(np.float64) @ V.astype(np.float64)
    excess = float(np.linalg.norm(gram - np.eye(p))) + D * 2.0**-50  # ≥ ‖VᵀV − 1‖
    columns, lengths, slack = np.empty((p + 2, N), np.float32), np.empty(N), 0.0
    for tile in frame.tiles:
        here, squares = frame.rows(tile), frame.squares[tile].astype(np.float64)
        z = here[:, :_DEPTH] @ V[:_DEPTH]
        for start in range(_DEPTH, D, _DEPTH):
            z += here[:, start : start + _DEPTH] @ V[start : start + _DEPTH]
        rest, error = _rest(z, squares, excess, D)
        columns[:p, tile], columns[p, tile] = z.T, rest
        lengths[tile] = np.square(columns[: p + 1, tile], dtype=np.float64).sum(axis=0)
        rounding = 3 * _UNIT + excess  # of x − c if it is no whole number, of r, and of V
        slack = max(slack, float(np.max(error + rounding * np.sqrt(squares))))
    columns[p + 1] = lengths
    return Bounds(columns.T.__getitem__, lengths, p + 1, slack, frame.scale, sketched=True)


def _rest(z: F32, squares: F64, excess: float, D: int) -> tuple[F64, F64]:
    """r = √(‖x‖² − ‖z‖²) of each row, and how far (z, r) may be from its exact place."""
    # |error of z_j| ≤ unit: Σ_i |x_i||V_ij| ≤ ‖x‖, as V's columns have length 1
    steps = min(_DEPTH, D) + D // _DEPTH + 4
    unit = steps * _UNIT * 1.01 * np.sqrt(squares) * (1 + excess)
    error = unit * np.sqrt(z.shape[1])
    # what the error of z, and a V that is not quite orthonormal, do to r²
    doubt = 2 * unit * np.abs(z).sum(axis=1, dtype=np.float64) + error**2
    doubt += (3 * excess + D * 2.0**-50) * squares
    rest = np.maximum(squares - np.einsum("np,np->n", z, z, dtype=np.float64), 0)
    r = np.sqrt(rest)
    blur = np.maximum(np.sqrt(rest + doubt) - r, r - np.sqrt(np.maximum(rest - doubt, 0)))
    return r, np.hypot(error, blur)


def principal_directions(sample: F32, p: int) -> F32:
    """(D, ≤ p) orthonormal, about the leading right singular vectors of a sample, best first.

    Those of a few rows, and one power iteration on all: nearly as good for pruning as the
    decomposition of all rows, at a fraction of its time.
    """
    few = sample[:: max(1, len(sample) // (2 * p))]
    _, left = np.linalg.eigh(few @ few.T)
    wide = (sample.T @ (sample @ (few.T @ left[:, ::-1][:, :p]))).astype(np.float64)
    lengths = np.sqrt(np.square(wide).sum(axis=0))
    kept = lengths > 1e-7 * lengths.max(initial=0)  # beyond is what rounding left
    return np.ascontiguousarray(np.linalg.qr(wide[:, kept])[0], dtype=np.float32)


def _rank(frame: Frame, bounds: Bounds, queries: Ints, k: int, scores: F32) -> Ints | None:
    """(Q, k): the nearest rows, from the scores of all; ``None`` if sketches leave too many."""
    least = scores.reshape(len(scores), _GROUP, -1).min(axis=1)
    some = min(k + 1 + _MARGIN, least.shape[1])
    level = np.partition(least, some - 1, axis=1)[:, some - 1 : some]
    if some <= k:  # so few groups: look at all rows
        level[:] = np.finfo(np.float32).max
    near = _measured(frame, queries, scores, least, np.full_like(level, -np.inf), level)
    most = bounds.most(queries, _first(near, k, len(queries))[1][:, -1])[:, None]
    left = np.count_nonzero(scores <= most)
    if bounds.sketched and left > _FUTILE * len(queries) * len(frame.data):
        return None
    if left > _MOST and len(queries) > 1:  # many ties: fewer queries at a time
        half = len(queries) // 2
        halves = slice(None, half), slice(half, None)
        parts = [_rank(frame, bounds, queries[s], k, scores[s]) for s in halves]
        found = [part for part in parts if part is not None]
        return np.concatenate(found) if len(found) == 2 else None
    more = _measured(frame, queries, scores, least, level, most)
    pairs = [np.concatenate(both) for both in zip(near, more, strict=True)]
    return _first(pairs, k, len(queries))[0]


def _measured(frame: Frame, queries: Ints, scores: F32, least: F32, low: F32, high: F32) -> Pairs:
    """Every pair of low < score ≤ high but the query itself; group g has the rows g, g + G, …"""
    query, group = np.nonzero(least <= high)
    found = scores.reshape(len(scores), _GROUP, -1)[query, :, group]
    pair, place = np.nonzero((low[query] < found) & (found <= high[query]))
    who, rows = query[pair], place * least.shape[1] + group[pair]
    kept = (rows != queries[who]) & (rows < len(frame.data))
    who, rows = who[kept], rows[kept]
    return [who, rows, frame.distances(queries, who, rows)]


def _first(pairs: Pairs, k: int, Q: int) -> tuple[Ints, NDArray[Any]]:
    """(Q, k) nearest rows, ties by row, and their squared distances."""
    who, rows, squares = pairs
    order = np.lexsort((rows, squares, who))
    starts = np.searchsorted(who[order], np.arange(Q))
    chosen = order[starts[:, None] + np.arange(k)]
    return rows[chosen], squares[chosen]
