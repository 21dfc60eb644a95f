"""Lower bounds of the distances between some queries and all rows, by matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.neighbors.plan import Plan
from tstar.difficulty.neighbors.sketch import F32, UNIT, Sketch, sketch, squared_lengths
from tstar.difficulty.neighbors.thumbnails import Thumbnails

GROUP = 16  # lower bounds are first looked at through the minimum of so many
_TILE = 1024  # rows of whole vectors converted at a time
_DUST = 1e-30  # more than what products too small for float32 can add up to
_FAR = np.float32(1e37)  # the score of a row that only fills up the last group

# (queries' positions, out (Q, padded N)) → fills out with s = ‖x‖² − 2x·q, approximately
Score = Callable[[NDArray[np.int64], F32], None]
# (queries' positions, d²) → the largest score that a row at squared distance ≤ d² can have
Threshold = Callable[[Any, Any], NDArray[np.float64]]


def padded(rows: int) -> int:
    return -(-rows // GROUP) * GROUP


def lower_bounds(
    data: NDArray[np.generic], plan: Plan, lengths: NDArray[np.int64] | None = None
) -> tuple[Score, Threshold, Thumbnails | None]:
    """The scoring function of a plan, the threshold that makes pruning with it safe, and thumbnails, if any."""
    if plan.directions is None:
        return *_by_tiles(data, plan), None
    made = sketch(data, plan.frame, plan.directions, lengths, plan.int8)
    return *_by_rows(made, plan.frame.scale), made.thumbnails


def _by_rows(made: Sketch, scale: float) -> tuple[Score, Threshold]:
    """Scores of sketches that are all in memory: one product."""
    rows = made.rows
    N, width = rows.shape
    squares = _squares(rows, whole=False)
    right = np.zeros((width + 1, padded(N)), np.float32)  # (−2q, 1)·(x, ‖x‖²) = ‖x‖² − 2x·q
    right[:width, :N] = rows.T
    right[width, :N] = squares
    right[width, N:] = _FAR

    def score(queries: NDArray[np.int64], out: F32) -> None:
        left = np.empty((len(queries), width + 1), np.float32)
        np.multiply(rows[queries], -2, out=left[:, :width])
        left[:, width] = 1
        np.matmul(left, right, out=out)

    return score, _threshold(squares, width + 1, made.slack, scale)


def _by_tiles(data: NDArray[np.generic], plan: Plan) -> tuple[Score, Threshold]:
    """Scores of whole vectors: the data are converted a tile at a time."""
    N, width = data.shape
    whole = data.dtype == np.uint8
    if plan.int8:
        integer, squares = _int8(data)
        return integer, _threshold(squares, 4, 0.0, 1.0)
    tile = np.empty((_TILE, width), np.float32)
    squares = np.concatenate(
        [
            _squares(plan.frame.place(data[i : i + _TILE], tile[: N - i]), whole)
            for i in range(0, N, _TILE)
        ]
    )

    def score(queries: NDArray[np.int64], out: F32) -> None:
        left = plan.frame.place(data[queries]) * np.float32(-2)
        for start in range(0, N, _TILE):
            right = plan.frame.place(data[start : start + _TILE], tile[: N - start])
            here = out[:, start : start + len(right)]
            np.matmul(left, right.T, out=here)
            here += squares[start : start + len(right)].astype(np.float32)
        out[:, N:] = _FAR

    rounding = 0.0 if whole else 3 * UNIT * float(np.sqrt(squares.max()))
    return score, _threshold(squares, width, rounding, plan.frame.scale)


def _int8(data: NDArray[np.generic]) -> tuple[Score, NDArray[np.float64]]:
    """As :func:`_by_tiles` by int8 products, of which only the last rounding to float32 is inexact."""
    import torch

    N, width = data.shape
    depth = -(-width // 8) * 8  # the product wants multiples of 8, on some devices

    def shifted(rows: NDArray[np.generic]) -> torch.Tensor:
        padded_rows = np.zeros((-(-len(rows) // 32) * 32, depth), np.int8)
        padded_rows[: len(rows), :width] = (rows ^ np.uint8(128)).view(np.int8)
        return torch.from_numpy(padded_rows)

    def square(rows: NDArray[np.generic]) -> NDArray[np.float64]:
        return squared_lengths(rows.astype(np.float32) - np.float32(128))

    squares = np.concatenate([square(data[i : i + _TILE]) for i in range(0, N, _TILE)])

    def score(queries: NDArray[np.int64], out: F32) -> None:
        left = shifted(data[queries])
        for start in range(0, N, _TILE):
            rows = data[start : start + _TILE]
            dots = torch._int_mm(left, shifted(rows).T)[: len(queries), : len(rows)]
            out[:, start : start + len(rows)] = squares[start : start + len(rows)] - 2.0 * (
                dots.numpy().astype(np.float64)
            )
        out[:, N:] = _FAR

    return score, squares


def _threshold(squares: NDArray[np.float64], width: int, slack: float, scale: float) -> Threshold:
    r"""A row with ‖x − q‖² ≤ d² has a score of at most (d + 2·slack)² − ‖q‖² + rounding.

    A float32 sum of n products is wrong by at most n·2⁻²⁴/(1 − n·2⁻²⁴) times the sum of their
    absolute values, here 2‖x‖‖q‖ + ‖x‖², in any order and with or without fused operations.
    """
    longest = float(np.sqrt(squares.max()))
    g = (width + 4) * UNIT * 1.01

    def threshold(queries: Any, squared_distances: Any) -> NDArray[np.float64]:
        length = np.sqrt(squares[queries])
        reach = np.sqrt(squared_distances) * scale * (1 + 1e-9) + 2 * slack
        # only rows with ‖x‖ ≤ ‖q‖ + reach can be that near, so no longer ones need be allowed for
        x = np.minimum(longest, length + reach)
        most: NDArray[np.float64] = (
            reach**2 - length**2 * (1 - 1e-9) + g * (2 * x * length + x * x) + _DUST
        )
        return most

    return threshold


def _squares(rows: F32, whole: bool) -> NDArray[np.float64]:
    """‖x‖² to float64's precision, where the rows are not whole numbers; exact where they are."""
    if whole:
        return squared_lengths(rows)
    total: NDArray[np.float64] = np.einsum("nd,nd->n", rows, rows, dtype=np.float64)
    return total
