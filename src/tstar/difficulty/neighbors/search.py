"""The k nearest neighbors of some rows among all rows, exactly.

For a block of queries: lower bounds of all distances by one matrix product (:mod:`.scores`); the few
rows with the smallest bounds are measured exactly, which gives a distance that the k-th neighbor
cannot exceed; every row whose bounds do not exceed it is measured (:mod:`.exact`). What the
bounds rule out is provably farther away, so the answer is that of a full search.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.neighbors.exact import Exact
from tstar.difficulty.neighbors.pairs import Pairs, first, joined
from tstar.difficulty.neighbors.plan import make_plan
from tstar.difficulty.neighbors.scores import GROUP, Threshold, lower_bounds, padded
from tstar.difficulty.neighbors.sketch import F32
from tstar.difficulty.neighbors.thumbnails import Thumbnails

_MEMORY = 64 << 20  # bytes of lower bounds held at a time ...
_LEAST = 64  # ... but never fewer queries than this, which would starve the matrix product
_MARGIN = 34  # rows looked at besides the k neighbors and the sample itself, to find the reach ...
_LIKELY = 7  # ... and those measured besides k, where thumbnails say which are likely


def nearest(
    data: NDArray[np.generic],
    queries: NDArray[np.int64],
    k: int,
    *,
    block: int | None = None,
    threads: int | None = None,
    route: str | None = None,
    tick: Callable[[int], object] = lambda done: None,
) -> NDArray[np.int64]:
    """(Q, k) positions of the nearest rows, nearest first, ties broken by position.

    The query itself is never among its neighbors; a duplicate of it is.

    Args:
        data: (N, D) uint8, float32 or float64, with k < N.
        queries: (Q,) positions.
        block: queries handled at a time; by default what fits into 64 MB of lower bounds.
        threads: for the exact distances; by default as many as torch uses.
        route: ``"sketch"``, ``"whole"`` or ``"int8"`` in place of the fastest; all agree to the bit.
        tick: called with the number of queries done.
    """
    plan = make_plan(data, len(queries), k, route)
    measure = Exact(data, int8=plan.int8)
    lengths = measure.squares if measure.whole else None
    score, threshold, small = lower_bounds(data, plan, lengths)
    columns = padded(len(data))
    block = min(block or max(_LEAST, _MEMORY // (4 * columns)), len(queries))
    scores = np.empty((block, columns), np.float32)
    found = np.empty((len(queries), k), np.int64)
    threads = threads or _torch_threads()

    def refine(part: slice, start: int) -> None:
        mine = slice(start + part.start, start + part.stop)
        if part.start < part.stop:
            own = measure.copy(), small and small.copy()
            found[mine] = _refine(*own, queries[mine], k, threshold, scores[part])

    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(queries), block):
            size = min(block, len(queries) - start)
            score(queries[start : start + size], scores[:size])
            spread = pool.map if threads > 1 else map  # another thread costs time of its own
            list(spread(partial(refine, start=start), _split(size, threads)))
            tick(size)
    return found


def _refine(
    exact: Exact,
    small: Thumbnails | None,
    queries: NDArray[np.int64],
    k: int,
    threshold: Threshold,
    scores: F32,
) -> NDArray[np.int64]:
    """(Q, k): the nearest rows of some queries, from the lower bounds of all rows.

    Rows are looked at through groups: column g of ``scores`` holds the rows g, g + G, g + 2G, …
    """
    scores = scores.reshape(len(scores), GROUP, -1)
    least = scores.min(axis=1)
    groups = min(k + 1 + _MARGIN, least.shape[1])
    level = np.partition(least, groups - 1, axis=1)[:, groups - 1]
    within = partial(_within, scores, least, queries=queries, rows=len(exact.data))
    pairs = within(None, level)
    few = np.diff(pairs.edges(len(queries))) < k  # tiny groups: look at all rows
    if few.any():
        level[few] = np.inf
        pairs = within(None, level)
    bounds = None if small is None else small.bounds(queries, pairs)
    measured, waiting = _likely(pairs, bounds, k)
    squares = exact.distances(queries, measured)
    # A squared distance that the k-th neighbor cannot exceed: that of the k-th of these.
    reach = squares[first(measured, squares, k, len(queries))[:, -1]]
    more = within(level, _up(threshold(queries, reach)))
    if small is not None and bounds is not None:
        more, (both,) = joined(
            pairs, more, (np.where(waiting, bounds, np.inf), small.bounds(queries, more))
        )
        more = more.only(both <= reach[more.who])
    measured, (squares,) = joined(measured, more, (squares, exact.distances(queries, more)))
    return measured.rows[first(measured, squares, k, len(queries))]


def _likely(
    pairs: Pairs, bounds: NDArray[np.float64] | None, k: int
) -> tuple[Pairs, NDArray[np.bool_]]:
    """The pairs to measure first, and a mask of the others: those of the smallest bounds, if there are any."""
    if bounds is None:
        return pairs, np.zeros(len(pairs.who), bool)
    order = np.lexsort((bounds, pairs.who))
    place = np.arange(len(order)) - np.searchsorted(pairs.who, pairs.who)
    waiting = np.ones(len(order), bool)
    waiting[order[place < k + _LIKELY]] = False
    return pairs.only(~waiting), waiting


def _up(limits: NDArray[np.float64]) -> F32:
    """The next float32 above each limit, so that rounding it rules nothing out."""
    above: F32 = np.nextafter(np.float32(limits), np.float32(np.inf))
    return above


def _within(
    scores: F32,
    least: F32,
    above: F32 | None,
    level: F32,
    *,
    queries: NDArray[np.int64],
    rows: int,
) -> Pairs:
    """For each query the rows with above < score ≤ level, without itself and the filling."""
    query, group = np.nonzero(least <= level[:, None])
    some = scores[query, :, group]
    inside = some <= level[query, None]
    if above is not None:
        inside &= some > above[query, None]
    pair, within = np.nonzero(inside)
    who, positions = query[pair], within * least.shape[1] + group[pair]
    return Pairs(who, positions).only((positions != queries[who]) & (positions < rows))


def _split(size: int, parts: int) -> list[slice]:
    edges = [size * i // parts for i in range(parts + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def _torch_threads() -> int:
    import torch

    return torch.get_num_threads()
