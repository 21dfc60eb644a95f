"""Queries and the rows that may be their neighbors, in flat arrays: one pass over all queries of a block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pairs:
    """``who`` (P,), ascending: which query of the block; ``rows`` (P,): a row to compare it with."""

    who: NDArray[np.int64]
    rows: NDArray[np.int64]

    def edges(self, queries: int) -> NDArray[np.int64]:
        """(Q + 1,): the pairs of query i are those from edge i to edge i + 1."""
        return np.searchsorted(self.who, np.arange(queries + 1))

    def parts(self, most: int) -> Iterator[tuple[int, int, int]]:
        """(query, start, stop) of at most so many pairs of one query, in order."""
        starts = np.flatnonzero(np.diff(self.who, prepend=-1))
        who = self.who[starts].tolist()
        for i, (a, b) in zip(who, pairwise([*starts.tolist(), len(self.who)]), strict=True):
            for start in range(a, b, most):
                yield i, start, min(start + most, b)

    def only(self, which: Any) -> Pairs:
        """Those that a mask, or ascending positions, select."""
        return Pairs(self.who[which], self.rows[which])


def first(pairs: Pairs, values: NDArray[np.generic], k: int, queries: int) -> NDArray[np.int64]:
    """(Q, k) positions of the pairs of least value of each query, ties broken by row; each must have k."""
    order = np.lexsort((pairs.rows, values, pairs.who))
    least: NDArray[np.int64] = order[pairs.edges(queries)[:-1, None] + np.arange(k)]
    return least


def joined(a: Pairs, b: Pairs, *values: Any) -> tuple[Pairs, list[NDArray[Any]]]:
    """Both as one, with their values (of a, of b) likewise."""
    who = np.concatenate([a.who, b.who])
    order = np.argsort(who, kind="stable")
    rows = np.concatenate([a.rows, b.rows])[order]
    return Pairs(who[order], rows), [np.concatenate(pair)[order] for pair in values]
