"""Data become a matrix: one row of numbers per sample, its class, and what was done on the way."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tstar.bars import progress
from tstar.data.arrays import as_array, encode, looks_like_tokens, numbers, plain
from tstar.data.door import Source, open_data
from tstar.data.limits import MEMORY, most_bytes, most_held
from tstar.data.pixels import from_pil, is_image, is_pil, pixels
from tstar.data.streams import elsewhere
from tstar.difficulty.embedding import Embed, embedder, prepared, runs
from tstar.errors import TstarError

if TYPE_CHECKING:
    import torch

LARGEST = 1e100  # squares of larger numbers leave float64's range
_BLOCK = 512
_TOKENS = (
    "Samples must be numbers whose distance means something, but {} token ids; pass the data set before "
    "tokenize(), embed= with a text encoder, or floats if they are quantities."
)


@dataclass(frozen=True)
class Matrix:
    """N samples of D numbers, with classes coded 0 … K−1 in the order of their first sample.

    ``scale`` maps a difference of values to the unit that box volumes are measured in (1/255 for
    8-bit pixels). ``positions`` says where the samples were, if not all were read. ``on_device`` is the
    same matrix where it came on a GPU.
    """

    values: NDArray[Any]
    codes: NDArray[np.int64]
    classes: tuple[Hashable, ...]
    scale: float = 1.0
    notes: tuple[str, ...] = ()
    positions: NDArray[np.int64] | None = None
    on_device: torch.Tensor | None = None


def read(
    data: Any,
    labels: Any = None,
    *,
    size: int | None = 32,
    embed: Embed | None = None,
    skip_unreadable: bool = False,
    limit: int | None = None,
    seed: int = 0,
    root: str | os.PathLike[str] | None = None,
) -> Matrix:
    """Anything that :func:`tstar.data.door.open_data` takes as a :class:`Matrix`.

    Features and flat pixels are taken as they are. Images become rows of pixels
    (:mod:`tstar.data.pixels`), brought to size×size by area averaging.
    """
    source = open_data(data, labels, size=None if embed else size, root=root)
    if source.tokens and embed is None:
        raise TstarError(_TOKENS.format(f"{source.name} holds"))
    some = source.some(limit, seed)
    if source.x is not None and embed is None:
        x, y = _chosen(source.x, some), _chosen(source.y, some)
        values, images = matrix_of(x, size, source.tensor is not None), x.ndim == 4
        seen = y
    else:
        values, seen, images = _from_stream(source, some, size, embed, seed)
    if source.unreadable and not skip_unreadable:
        raise _unreadable(source.unreadable)
    codes, classes = encode(seen)
    scale, notes = _unit(values, images)
    if source.unreadable:
        count, first = len(source.unreadable), source.unreadable[0]
        notes += (f"{count} unreadable files were skipped, the first: {first}",)
    if some is not None:
        notes += (f"measured on {len(some):,} of {source.length:,} samples, drawn by the seed",)
    on_device = _on_device(source.tensor, values) if some is None and not embed else None
    return Matrix(values, codes, _named(classes, source.names), scale, notes, some, on_device)


def matrix_of(array: NDArray[Any], size: int | None, prefer_first: bool) -> NDArray[Any]:
    """(N, D) of a whole array of samples."""
    if not is_image(array):
        values = features(array.reshape(len(array), -1))
        check_finite(values)
        return values
    rows = Rows(len(array))
    for start in range(0, len(array), _BLOCK):
        rows.extend(image_rows(array[start : start + _BLOCK], size, prefer_first))
    return rows.matrix()


def sample_row(sample: Any, size: int | None) -> tuple[NDArray[Any], bool]:
    """One sample as a matrix of one row, and whether it is an image."""
    if is_pil(sample):
        return image_rows(from_pil(sample)[None], size), True
    array = as_array(sample, "A sample")
    if array is None:
        raise TstarError(
            f"A sample must be an image, an array or a tensor, got {type(sample).__name__}."
        )
    array = numbers(array, "A sample")[None]
    if looks_like_tokens(array.shape[1:], array.dtype):
        raise TstarError(_TOKENS.format("rows of whole numbers look like"))
    if is_image(array):
        return image_rows(array, size, hasattr(sample, "layout")), True
    return features(array.reshape(1, -1)), False


def image_rows(images: NDArray[Any], size: int | None, prefer_first: bool = False) -> NDArray[Any]:
    """(N, D) uint8 or float32 from a batch of images."""
    batch = pixels(images, prefer_first)
    if size is not None and batch.shape[2:] != (size, size):
        import torch

        from tstar.data.resize import area_resize

        batch = area_resize(torch.from_numpy(np.ascontiguousarray(batch)), size).numpy()
    return np.ascontiguousarray(batch).reshape(len(batch), -1)


def features(array: NDArray[Any]) -> NDArray[Any]:
    """uint8, float32 and float64 as they are; other numbers as the float that holds them."""
    if array.dtype in (np.uint8, np.float32, np.float64):
        return np.ascontiguousarray(array)
    return array.astype(np.float32 if array.dtype in (np.float16, np.bool_) else np.float64)


class Rows:
    """Grows into an (N, D) matrix: 8-bit while all rows are (N·D bytes), floats from the first other.

    Where the number of samples is known the matrix is allocated once; else it doubles as it fills.
    """

    def __init__(self, expected: int | None) -> None:
        # Where images are never held (0), csg may still have its matrix: as much as a file may unpack to.
        self._expected, self._most = expected or 0, most_held() or most_bytes()
        self._room = expected or 1024
        self._values: NDArray[Any] | None = None
        self._count = 0

    def extend(self, rows: NDArray[Any]) -> None:
        check_finite(rows, self._count)
        end = self._count + len(rows)
        needed = max(self._expected, end) * rows.shape[1] * rows.itemsize
        if needed > self._most:
            raise TstarError(
                f"The data must fit into {self._most >> 20:,} MB, but {max(self._expected, end):,} samples of {rows.shape[1]:,} values "
                f"do not; pass a smaller size, read fewer samples, or set {MEMORY}={-(-needed >> 20)}."
            )
        if self._values is None:
            self._values = np.empty((max(self._room, end), rows.shape[1]), rows.dtype)
        values = self._values
        if rows.shape[1] != values.shape[1]:
            raise TstarError(
                f"All samples must have the same number of values, but sample {self._count} has "
                f"{rows.shape[1]} and those before it {values.shape[1]}; pass size=32 to bring images of "
                "mixed sizes to one."
            )
        if values.dtype == np.uint8 and rows.dtype != np.uint8:
            values = self._grown(len(values), rows.dtype, 1 / 255)
        elif values.dtype != np.uint8 and rows.dtype == np.uint8:
            rows = rows / np.float32(255)
        if end > len(values):
            values = self._grown(max(2 * len(values), end), values.dtype, None)
        values[self._count : end] = rows
        self._values, self._count = values, end

    def matrix(self) -> NDArray[Any]:
        if self._values is None:
            return np.empty((0, 0), np.uint8)
        return self._values[: self._count]

    def _grown(self, room: int, dtype: np.dtype[Any], factor: float | None) -> NDArray[Any]:
        grown, old = np.empty((room, self.matrix().shape[1]), dtype), self.matrix()
        grown[: self._count] = old if factor is None else old * np.float32(factor)
        return grown


def check_finite(rows: NDArray[Any], first: int = 0) -> None:
    """NaN, infinity and numbers whose squares overflow are errors, with the sample's position."""
    if rows.dtype.kind != "f":
        return
    bad = ~np.isfinite(rows)
    if rows.dtype == np.float64:
        bad |= np.greater(np.abs(rows), LARGEST)
    if bad.any():
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        raise TstarError(
            f"Every value must be a finite number (below 1e100), but sample {first + row} has "
            f"{rows[row][bad[row]][0]!r}; remove or repair such samples."
        )


def _from_stream(
    source: Source,
    some: NDArray[np.int64] | None,
    size: int | None,
    embed: Embed | None,
    seed: int,
) -> tuple[NDArray[Any], list[Any], bool]:
    """Rows, labels, and whether the rows are images; each sample is seen once and then let go."""
    expected = source.length if some is None else len(some)
    rows, labels = Rows(expected), []
    images = False
    with progress("reading", expected) as tick:

        def stream() -> Iterator[tuple[Any, Any]]:
            for position, (sample, label) in enumerate(_pairs(source, some)):
                row = prepared(sample) if embed else sample_row(sample, size)
                yield row, plain(label, position)

        def noted() -> Iterator[Any]:
            for row, label in elsewhere(stream, seed) if source.foreign else stream():
                labels.append(label)
                yield row
                tick(1)

        if embed is None:
            for row, image in noted():
                images = images or image
                rows.extend(row)
        else:
            with embedder(embed) as run:
                for batch in runs(noted()):
                    rows.extend(features(run(batch)))
    return rows.matrix(), labels, images


def _pairs(source: Source, some: NDArray[np.int64] | None) -> Iterable[tuple[Any, Any]]:
    if source.pairs is not None:
        return source.pairs(None if some is None else some.tolist())
    x = source.x if source.tensor is None else source.tensor
    chosen = range(len(source.y)) if some is None else some.tolist()
    return ((x[i], source.y[i]) for i in chosen)  # type: ignore[index]


def _chosen(values: Any, some: NDArray[np.int64] | None) -> Any:
    if some is None:
        return values
    return values[some] if isinstance(values, np.ndarray) else [values[i] for i in some]


def _named(classes: tuple[Hashable, ...], names: Sequence[Any] | None) -> tuple[Hashable, ...]:
    """Integer classes by the names that a data set lists for them, where it lists enough."""
    if names is None or len(set(map(str, names))) < len(names):
        return classes
    listed = [c for c in classes if isinstance(c, int) and 0 <= c < len(names)]
    return tuple(str(names[c]) for c in listed) if len(listed) == len(classes) else classes


def _unit(values: NDArray[Any], images: bool) -> tuple[float, tuple[str, ...]]:
    """What one unit of a box's side is: [0, 1] for pixels; for features, the features' own."""
    if values.dtype == np.uint8:
        return 1 / 255, ()
    if not images or not len(values):
        return 1.0, ()
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        return 1.0, ()
    note = f"pixels from {low:.4g} to {high:.4g} were measured relative to that range"
    return 1 / (high - low), (note,)


def _on_device(tensor: Any, values: NDArray[Any]) -> Any:
    """The matrix on the GPU that the data came from, if 8-bit; floats are searched on the CPU."""
    if tensor is not None and tensor.device.type != "cpu" and values.dtype == np.uint8:
        import torch

        return torch.from_numpy(values).to(tensor.device)
    return None


def _unreadable(files: list[str]) -> TstarError:
    shown = "; ".join(files[:5]) + (f"; and {len(files) - 5} more" if len(files) > 5 else "")
    return TstarError(
        f"Every image must be readable, but {len(files)} {'is' if len(files) == 1 else 'are'} not: "
        f"{shown}. Repair or remove them, or pass skip_unreadable=True."
    )
