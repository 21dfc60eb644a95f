"""Which route finds the neighbors soonest: short sketches, or the whole vectors.

All routes give the same neighbors; this file only decides how long it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.neighbors.exact import int8_is_exact, int8_is_faster
from tstar.difficulty.neighbors.sketch import (
    F32,
    Frame,
    frame_of,
    principal_directions,
    squared_lengths,
)

SHORT = 64  # vectors of at most this many dimensions need no shorter sketch
_WIDTHS = (32, 64, 96, 128, 160, 192)
_BASIS = 4096  # samples that the principal directions are computed from
_VISIT = 20.0  # the time to look at one lower bound, in multiply-adds of a float32 product
_FIND = 2000.0  # that to find one row that the lower bounds leave, among those of its group
# Two more such times, by float32 products (AVX2, AVX-512) and by int8 ones (VNNI): that of one dimension of
# one exact distance (25 and 16, but the pilot sees three times too many), and that of one of a whole vector.
_CHECK = {False: 8.0, True: 5.0}
_WHOLE = {False: 1.0, True: 0.3}


@dataclass(frozen=True)
class Plan:
    """``directions`` (D, p) to sketch with; ``None`` for whole vectors. ``int8``: by products of such."""

    frame: Frame
    directions: F32 | None
    int8: bool = False


def make_plan(data: NDArray[np.generic], queries: int, k: int, route: str | None = None) -> Plan:
    """The cheapest plan for that many queries, or the one that ``route`` names (for tests)."""
    frame = frame_of(data)
    whole = data.dtype == np.uint8
    wanted = route == "int8" or (route is None and int8_is_faster())
    int8 = whole and wanted and int8_is_exact()
    if route in (None, "sketch") and min(data.shape) > SHORT:
        plan = _sketched(data, frame, queries, int8, forced=route == "sketch")
        if plan is not None:
            return plan
    return Plan(frame, None, int8)


def _sketched(
    data: NDArray[np.generic], frame: Frame, queries: int, int8: bool, forced: bool
) -> Plan | None:
    """The sketch of the cheapest width, or ``None`` where whole vectors are cheaper still."""
    N, D = data.shape
    some = data[:: -(-N // _BASIS)]
    basis = frame.reduced(some)
    widths = [p for p in _WIDTHS if p <= min(basis.shape[1] // 2, len(basis) // 4)]
    if not widths:
        return None
    V = principal_directions(basis, widths[-1])
    widths = sorted({min(p, V.shape[1]) for p in widths} - {0})
    if not widths:  # all rows are the same
        return None
    every = 2 if len(basis) > _BASIS // 2 else 1
    share = _survivors(frame.place(some[::every]), basis[::every] @ V, widths)
    read = basis.shape[1]  # by a check: the row, or the thumbnail of a picture
    costs = {
        p: N * read * p + queries * N * (p + _VISIT + (_FIND + _CHECK[int8] * read) * share[p])
        for p in widths
    }
    best = min(costs, key=costs.__getitem__)
    if not forced and costs[best] > queries * N * (_WHOLE[int8] * D + _VISIT):
        return None
    return Plan(frame, np.ascontiguousarray(V[:, :best]), int8)


def _survivors(pilot: F32, z: F32, widths: list[int]) -> dict[int, float]:
    """The share of a pilot sample whose lower bound does not exceed the nearest neighbor's distance."""
    some = np.arange(0, len(pilot), -(-len(pilot) // 64))
    squares = squared_lengths(pilot)
    distance = squares[some, None] + squares - 2.0 * (pilot[some] @ pilot.T)
    distance[np.arange(len(some)), some] = np.inf
    nearest = distance.min(axis=1, keepdims=True)
    share = {}
    for p in widths:
        rest = np.sqrt(np.maximum(squares - squared_lengths(z[:, :p]), 0))
        rows = np.column_stack([z[:, :p], rest])
        bound = squares[some, None] + squares - 2.0 * (rows[some] @ rows.T)
        share[p] = float((bound <= nearest).mean())
    return share
