r"""A short vector for each sample whose distances are lower bounds of the true ones.

With V (D×p) orthonormal and c any center, split x − c into V·z, z = Vᵀ(x − c), and a rest of
length r. Then for all x and q

    ‖x − q‖² ≥ ‖z_x − z_q‖² + (r_x − r_q)²,

which is a squared distance of the (p+1)-vectors (z, r). V holds leading principal directions of a
sample of the data, so that the bound is tight; any V is correct. All is float32, and every rounding
is accounted for: the error of (z, r) is at most ``slack`` in length for each row.

Where rows are 8-bit pictures, V is taken from the means of 2×2 pixels: a quarter of the numbers to multiply
with, and nearly all of the variation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.neighbors.exact import CHUNK, MIDDLE, Exact
from tstar.difficulty.neighbors.thumbnails import Thumbnails, rest_between

UNIT = 2.0**-24  # float32's unit roundoff
_DEPTH = 256  # products are summed in pieces of this length, which bounds their rounding
_KEPT = 0.8  # of the variation that 2×2 means must keep to stand for a picture
_LEAST_SIDE = 8  # pixels of a reduced picture
_TILE = 1024  # rows converted to float32 at a time: few calls of BLAS, whose threads wait for each other

F32 = NDArray[np.float32]


@dataclass(frozen=True)
class Sketch:
    """Rows (N, p+1), how far a row may be from its exact place, and the thumbnails of 8-bit pictures."""

    rows: F32
    slack: float
    thumbnails: Thumbnails | None = None


@dataclass(frozen=True)
class Frame:
    """Where x is seen from: (x − center)·scale, scale a power of two, so that float32 is wide enough.

    The center of 8-bit data is one whole number for all dimensions. ``picture`` (a, side, b) says that a
    row is a picture of a×side×side×b numbers.
    """

    center: Any
    scale: float = 1.0
    picture: tuple[int, int, int] | None = None

    def place(self, data: NDArray[np.generic], out: F32 | None = None) -> F32:
        """(x − c)·scale in float32: exact for 8-bit data, two roundings of each number otherwise."""
        if out is None:
            out = np.empty(data.shape, np.float32)
        if data.dtype == np.uint8:
            out[...] = data
            out -= self.center
        else:
            out[...] = np.multiply(np.subtract(data, self.center), self.scale)
        return out

    def reduced(self, data: NDArray[Any], out: F32 | None = None) -> F32:
        """``place``, or Σ(x − c)/2 over 2×2 pixels of a picture: projections on orthonormal directions, exact."""
        if self.picture is None:
            return self.place(data, out)
        return self.halved(self.sums(data))

    def sums(self, data: NDArray[Any]) -> NDArray[np.uint16]:
        """Σx over 2×2 pixels of a picture, (n, D/4)."""
        assert self.picture is not None
        a, side, b = self.picture
        lines = data.reshape(len(data), a, side // 2, 2, side * b)
        pairs = np.add(lines[..., 0, :], lines[..., 1, :], dtype=np.uint16)
        pairs = pairs.reshape(len(data), a, side // 2, side // 2, 2, b)
        sums: NDArray[np.uint16] = np.add(pairs[..., 0, :], pairs[..., 1, :], dtype=np.uint16)
        return sums.reshape(len(data), -1)

    def halved(self, sums: NDArray[np.uint16]) -> F32:
        """Σ(x − c)/2 from Σx."""
        reduced: F32 = sums.astype(np.float32)
        reduced *= np.float32(0.5)
        reduced -= np.float32(2 * self.center)
        return reduced


def frame_of(data: NDArray[np.generic]) -> Frame:
    """A frame in the middle of the data; a whole number for 8-bit data, so that x − c is exact."""
    sample = data[:: max(1, len(data) // 1024)]
    if data.dtype == np.uint8:
        center = float(np.rint(sample.mean(dtype=np.float64)))
        return Frame(center, picture=_picture(sample, center))
    largest = max(float(np.abs(data).max()), np.finfo(np.float64).tiny)
    return Frame(sample.mean(axis=0, dtype=np.float64), 2.0 ** -np.ceil(np.log2(largest)))


def _picture(sample: NDArray[Any], center: float) -> tuple[int, int, int] | None:
    """The shape in which means of 2×2 pixels keep most of the variation, if there is such a one."""
    size = sample.shape[1]
    best, most = None, _KEPT * float(np.square(Frame(center).place(sample)).sum())
    for channels in (1, 3, 4):
        side = math.isqrt(size // channels)
        if channels * side * side != size or side % 2 or side < 2 * _LEAST_SIDE:
            continue
        for shape in {(channels, side, 1), (1, side, channels)}:
            kept = float(np.square(Frame(center, picture=shape).reduced(sample)).sum())
            if kept > most:
                best, most = shape, kept
    return best


def principal_directions(sample: F32, p: int) -> F32:
    """(D, ≤ p) orthonormal, about the leading right singular vectors of a centered sample, best first.

    Those of a few rows, and one power iteration on all: nearly as good for pruning as the
    decomposition of all rows, at a fraction of its time. Large products and small decompositions only.
    """
    few = sample[:: max(1, len(sample) // (2 * p))]
    _, left = np.linalg.eigh(few @ few.T)
    wide = (sample.T @ (sample @ (few.T @ left[:, ::-1][:, :p]))).astype(np.float64)
    lengths = np.sqrt(np.square(wide).sum(axis=0))
    kept = lengths > 1e-7 * lengths.max(initial=0)  # beyond is what rounding left
    return np.ascontiguousarray(np.linalg.qr(wide[:, kept])[0], dtype=np.float32)


def squared_lengths(rows: F32) -> NDArray[np.float64]:
    """‖x‖² of every row: exact for whole numbers up to 255, to 2⁻¹⁵ of itself otherwise."""
    total = np.zeros(len(rows))
    for start in range(0, rows.shape[1], CHUNK):
        piece = rows[:, start : start + CHUNK]
        total += np.einsum("nd,nd->n", piece, piece)
    return total


def norm_excess(V: F32) -> float:
    """An upper bound of ‖VᵀV − 1‖: how far V is from orthonormal after rounding to float32."""
    gram = V.T.astype(np.float64) @ V.astype(np.float64)
    return float(np.linalg.norm(gram - np.eye(V.shape[1]))) + len(V) * 2.0**-50


def sketch(
    data: NDArray[np.generic],
    frame: Frame,
    V: F32,
    lengths: NDArray[np.int64] | None = None,
    int8: bool = False,
) -> Sketch:
    """(z, r) of every row, reading the data once in tiles. ``lengths`` are ‖x − 128‖² of 8-bit rows."""
    size, p = V.shape
    rows = np.empty((len(data), p + 1), np.float32)
    tile = np.empty((_TILE, size), np.float32)
    excess = norm_excess(V)
    slack = 0.0
    small = frame.picture is not None and lengths is not None
    means = np.empty((len(data) if small else 0, size), np.uint8)
    rests = np.empty((len(means), 2))
    for start in range(0, len(data), _TILE):
        part = data[start : start + _TILE]
        if small:
            sums = frame.sums(part)
            here = frame.halved(sums)
            means[start : start + _TILE] = sums >> 2
        else:
            here = frame.reduced(part, tile[: len(part)])
        z = here[:, :_DEPTH] @ V[:_DEPTH]
        for piece in range(_DEPTH, size, _DEPTH):
            z += here[:, piece : piece + _DEPTH] @ V[piece : piece + _DEPTH]
        if lengths is None:
            squares, coarse = squared_lengths(here), 2.0**-15  # the relative error of ``squares``
        else:
            squares, coarse = _centered(lengths[start : start + _TILE], here, frame, data), 0.0
        if small:
            rests[start : start + _TILE] = rest_between(squares, squared_lengths(here), 2.0**-15)
        slack = max(slack, _place(rows[start : start + _TILE], here, V, z, squares, coarse, excess))
    return Sketch(rows, slack, Thumbnails(Exact(means, int8=int8), rests) if small else None)


def _centered(
    lengths: NDArray[np.int64], here: F32, frame: Frame, data: NDArray[np.generic]
) -> NDArray[np.float64]:
    """‖x − c‖² = ‖x − 128‖² − 2a·Σ(x − c) − D·a² with a = c − 128, all whole numbers."""
    aside = frame.center - MIDDLE
    sums = here.sum(axis=1, dtype=np.float64) * (1 if frame.picture is None else 2)
    centered: NDArray[np.float64] = lengths - 2 * aside * sums - data.shape[1] * aside**2
    return centered


def _place(
    out: F32,
    here: F32,
    V: F32,
    z: F32,
    squares: NDArray[np.float64],
    coarse: float,
    excess: float,
) -> float:
    """Write (z, r) of a tile; the largest error that one of its rows may have."""
    size, p = V.shape
    # |error of z_j| ≤ unit for sums in pieces: Σ_i |x_i||V_ij| ≤ ‖x‖, as V's columns have length 1
    steps = min(_DEPTH, size) + size // _DEPTH + 4
    unit = steps * UNIT * 1.01 * np.sqrt(squares * (1 + coarse)) * (1 + excess)
    error = unit * np.sqrt(p)
    projected = np.einsum("np,np->n", z, z, dtype=np.float64)
    # r² = ‖x‖² − ‖z‖²: what the errors of both, and a V that is not quite orthonormal, do to it
    doubt = 2 * unit * np.abs(z).sum(axis=1, dtype=np.float64) + error**2
    doubt += (3 * excess + coarse) * squares
    rest = squares - projected
    unclear = np.flatnonzero(rest < 64 * doubt)
    if len(unclear):  # the rest is small next to its error: once more, in float64
        fine = here[unclear].astype(np.float64)
        if coarse:
            squares[unclear] = np.einsum("nd,nd->n", fine, fine)
        fine = fine @ V.astype(np.float64)
        z[unclear] = fine
        projected[unclear] = np.einsum("np,np->n", fine, fine)
        error[unclear] = np.sqrt(squares[unclear]) * (size * 2.0**-50 + UNIT)
        doubt[unclear] = squares[unclear] * (size * 2.0**-48 + 3 * excess)
        rest = squares - projected
    r = np.sqrt(np.maximum(rest, 0))
    blur = np.maximum(
        np.sqrt(np.maximum(rest, 0) + doubt) - r, r - np.sqrt(np.maximum(rest - doubt, 0))
    )
    out[:, :-1] = z
    out[:, -1] = r
    length = np.sqrt(squares)
    rounding = 3 * UNIT * length  # of x − c where the data are not whole numbers, and of r itself
    return float(np.max(np.hypot(error, blur) + rounding + excess * length, initial=0.0))
