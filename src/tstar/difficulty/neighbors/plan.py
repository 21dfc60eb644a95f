"""Which route finds the neighbours soonest: short sketches, or the whole vectors.

All routes give the same neighbours; this file only decides how long it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.neighbors.sketch import (
    F32,
    Frame,
    frame_of,
    principal_directions,
    squared_lengths,
)

SHORT = 64  # vectors of at most this many dimensions need no shorter sketch
_WIDTHS = (32, 64, 128, 192)
_BASIS = 4096  # samples that the principal directions are computed from
# Times in units of one multiply-add of a matrix product, measured on AVX2.
_VISIT = 20.0  # looking at one lower bound
_CHECK = 12.0  # one dimension of one exact distance (30), as the pilot sees three times too many


@dataclass(frozen=True)
class Plan:
    """``directions`` (D, p) to sketch with; ``None`` for whole vectors."""

    frame: Frame
    directions: F32 | None
    int8: bool = False


def make_plan(data: NDArray[np.generic], queries: int, k: int, route: str | None = None) -> Plan:
    """The cheapest plan for that many queries, or the one that ``route`` names (for tests)."""
    frame = frame_of(data)
    if route in (None, "sketch") and min(data.shape) > SHORT:
        directions = _directions(data, frame, queries, forced=route == "sketch")
        if directions is not None:
            return Plan(frame, directions)
    whole = data.dtype == np.uint8
    return Plan(frame, None, whole and (route == "int8" or (route is None and int8_is_faster())))


def _directions(data: NDArray[np.generic], frame: Frame, queries: int, forced: bool) -> F32 | None:
    """Directions of the cheapest width, or ``None`` where whole vectors are cheaper still."""
    N, D = data.shape
    basis = frame.place(data[:: -(-N // _BASIS)])
    widths = [p for p in _WIDTHS if p <= min(D // 2, len(basis) // 4)]
    if not widths:
        return None
    V = principal_directions(basis, widths[-1])
    widths = sorted({min(p, V.shape[1]) for p in widths} - {0})
    if not widths:  # all rows are the same
        return None
    share = _survivors(basis[::2] if len(basis) > _BASIS // 2 else basis, V, widths)
    costs = {p: N * D * p + queries * N * (p + _VISIT + _CHECK * D * share[p]) for p in widths}
    best = min(costs, key=costs.__getitem__)
    if not forced and costs[best] > queries * N * (D + _VISIT):
        return None
    return np.ascontiguousarray(V[:, :best])


def _survivors(pilot: F32, V: F32, widths: list[int]) -> dict[int, float]:
    """The share of a pilot sample whose lower bound does not exceed the nearest neighbour's distance."""
    some = np.arange(0, len(pilot), -(-len(pilot) // 64))
    squares = squared_lengths(pilot)
    distance = squares[some, None] + squares - 2.0 * (pilot[some] @ pilot.T)
    distance[np.arange(len(some)), some] = np.inf
    nearest = distance.min(axis=1, keepdims=True)
    z = pilot @ V
    share = {}
    for p in widths:
        rest = np.sqrt(np.maximum(squares - squared_lengths(z[:, :p]), 0))
        rows = np.column_stack([z[:, :p], rest])
        bound = squares[some, None] + squares - 2.0 * (rows[some] @ rows.T)
        share[p] = float((bound <= nearest).mean())
    return share


@cache
def int8_is_faster() -> bool:
    """Whether this machine multiplies int8 matrices faster than float32 ones: measured once, in ms.

    ``torch._int_mm`` is several times faster where the CPU has VNNI, and many times slower where not.
    """
    import torch

    if not hasattr(torch, "_int_mm"):
        return False
    a = torch.zeros(64, 512, dtype=torch.int8)
    x = np.zeros((64, 512), np.float32)

    def soonest(product: object) -> float:
        times = []
        for _ in range(3):
            start = perf_counter()
            product()  # type: ignore[operator]
            times.append(perf_counter() - start)
        return min(times)

    try:
        return soonest(lambda: torch._int_mm(a, a.T)) < soonest(lambda: x @ x.T)
    except RuntimeError:
        return False
