"""The k nearest neighbours of some rows among all rows, exactly.

For a block of queries: lower bounds of all distances by one matrix product (:mod:`.scores`); the few
rows with the smallest bounds are measured exactly, which gives a distance that the k-th neighbour
cannot exceed; every row whose bound does not exceed it is measured as well (:mod:`.exact`). What the
bounds rule out is provably farther away, so the answer is that of a full search.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.neighbors.exact import Exact, rank
from tstar.difficulty.neighbors.plan import make_plan
from tstar.difficulty.neighbors.scores import GROUP, Threshold, padded, scores
from tstar.difficulty.neighbors.sketch import F32

_MEMORY = 64 << 20  # bytes of lower bounds held at a time ...
_LEAST = 64  # ... but never fewer queries than this, which would starve the matrix product
_STEP = 256  # rows measured before the limit is looked at again
_MARGIN = 10  # rows measured besides the k neighbours and the sample itself, to find the reach


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

    The query itself is never among its neighbours; a duplicate of it is.

    Args:
        data: (N, D) uint8, float32 or float64, with k < N.
        queries: (Q,) positions.
        block: queries handled at a time; by default what fits into 64 MB of lower bounds.
        threads: for the exact distances; by default as many as torch uses.
        route: ``"sketch"``, ``"whole"`` or ``"int8"`` in place of the fastest; all agree to the bit.
        tick: called with the number of queries done.
    """
    score, threshold = scores(data, make_plan(data, len(queries), k, route))
    columns = padded(len(data))
    block = min(block or max(_LEAST, _MEMORY // (4 * columns)), len(queries))
    bounds = np.empty((block, columns), np.float32)
    found = np.empty((len(queries), k), np.int64)
    threads = threads or _torch_threads()

    measure = Exact(data)

    def refine(rows: range, start: int, least: F32) -> None:
        exact = measure.copy()
        for row in rows:
            query = int(queries[start + row])
            found[start + row] = _refine(
                exact, query, k, threshold, bounds[row].reshape(GROUP, -1), least[row]
            )

    with ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(queries), block):
            size = min(block, len(queries) - start)
            score(queries[start : start + size], bounds[:size])
            least = np.concatenate(
                list(pool.map(lambda part: _group_minima(bounds[part]), _split(size, threads)))
            )
            parts = [range(size)[i::threads] for i in range(threads)]
            list(pool.map(refine, parts, [start] * len(parts), [least] * len(parts)))
            tick(size)
    return found


def _refine(
    exact: Exact, query: int, k: int, threshold: Threshold, bounds: F32, least: F32
) -> NDArray[np.int64]:
    """One query: measure rows in the order of their bounds until the bounds rule out the rest.

    Args:
        bounds: (GROUP, G); column g holds the rows g, g + G, g + 2G, …
        least: (G,) the minimum of each column.
    """
    first = min(k + 1 + _MARGIN, len(least))
    level = np.partition(least, first - 1)[first - 1]
    rows, _ = _below(bounds, least, level, query, len(exact.data))
    if len(rows) < k:  # so few groups that they do not hold k rows: look at every row
        level = np.float32(np.inf)
        rows, _ = _below(bounds, least, level, query, len(exact.data))
    measure = exact.from_query(query)
    near, squares = rank(measure(rows), rows, k)
    limit = _up(threshold(query, float(squares[-1])))
    rows, at = _below(bounds, least, limit, query, len(exact.data))
    rest = np.flatnonzero(at > level)
    order = rest[np.argsort(at[rest])]
    for start in range(0, len(order), _STEP):
        some = order[start : start + _STEP]
        some = some[at[some] <= limit]
        if len(some) == 0:
            break
        more = np.concatenate([near, rows[some]])
        near, squares = rank(np.concatenate([squares, measure(rows[some])]), more, k)
        limit = _up(threshold(query, float(squares[-1])))
    return near


def _up(limit: float) -> np.float32:
    """The next float32 above a limit, so that rounding it rules nothing out."""
    above: np.float32 = np.nextafter(np.float32(limit), np.float32(np.inf))
    return above


def _below(
    bounds: F32, least: F32, level: np.float32, query: int, rows: int
) -> tuple[NDArray[np.int64], F32]:
    """Positions whose bound is at most ``level``, without the query itself and the filling."""
    groups = np.flatnonzero(least <= level)
    some = bounds[:, groups]
    within, column = np.nonzero(some <= level)
    positions = within * len(least) + groups[column]
    keep = (positions != query) & (positions < rows)
    return positions[keep], some[within[keep], column[keep]]


def _group_minima(bounds: F32) -> F32:
    low: F32 = bounds.reshape(len(bounds), GROUP, bounds.shape[1] // GROUP).min(axis=1)
    return low


def _split(size: int, parts: int) -> list[slice]:
    edges = [size * i // parts for i in range(parts + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def _torch_threads() -> int:
    import torch

    return torch.get_num_threads()
