"""Image files as an array of pixels: in memory, or decoded a batch at a time where they do not fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import current_process
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, get_worker_info

from tstar.data.limits import LOADERS, MEMORY, most_held, number_from, open_image
from tstar.data.pixels import from_pil
from tstar.data.resize import area_resize
from tstar.errors import TstarError

_TOGETHER = 1024  # images that wait for a thread, or are read at once where all are asked for


class Images:
    """N image files that stand for a tensor N×3×H×W of uint8: indexing decodes, nothing is kept.

    :meth:`batches` decodes ahead in the worker processes of a torch ``DataLoader``. Whatever reads them, and
    in whatever order, an image has the same pixels as in memory.
    """

    dtype = torch.uint8
    device = torch.device("cpu")
    ndim = 4

    def __init__(
        self, files: Iterable[str | os.PathLike[str]], size: int | None, name: str
    ) -> None:
        # One array, no Python objects: worker processes share its pages.
        self._files = np.array([os.fsencode(file) for file in files])
        self.size, self.name = size, name
        if not len(self._files):
            raise TstarError(f"{name} must hold images, but has none.")
        self.shape = torch.Size((len(self._files), *_pixels(self._path(0), size).shape))

    @property
    def files(self) -> list[str]:
        return [os.fsdecode(file) for file in self._files]

    def __len__(self) -> int:
        return int(self.shape[0])

    def dim(self) -> int:
        return self.ndim

    def numel(self) -> int:
        return self.shape.numel()

    def element_size(self) -> int:
        return 1

    def is_floating_point(self) -> bool:
        return False

    def take(self, rows: Tensor) -> Images:
        """Those of the files."""
        part = object.__new__(Images)
        part.__dict__ |= self.__dict__ | {"_files": self._files[rows.numpy()]}
        part.shape = torch.Size((len(part._files), *self.shape[1:]))
        return part

    def __getitem__(self, index: Any) -> Tensor:
        rows = torch.arange(len(self))[index]
        if rows.ndim == 0:
            return self._read(int(rows))
        return stacked(self._read, rows.tolist(), self.shape[1:])

    def batches(self, rows: Sequence[Tensor | slice]) -> Iterator[Tensor]:
        """``self[r] for r in rows``, decoded ahead by worker processes."""
        data: Any = _Batches(self)
        loader: Any = DataLoader(
            data,
            batch_size=None,
            sampler=rows,
            # A process that may have no children decodes by itself.
            num_workers=0 if current_process().daemon else number_from(LOADERS, 1),
            generator=torch.Generator().manual_seed(0),  # else it draws on the process-wide one
        )
        for batch in loader:
            if isinstance(batch, str):
                raise TstarError(batch)
            yield batch

    def _path(self, row: int) -> Path:
        return Path(os.fsdecode(self._files[row]))

    def _read(self, row: int) -> Tensor:
        return _same_shape(_pixels(self._path(row), self.size), self.shape[1:], self.name)


class _Batches:
    """Batches of images for a ``DataLoader``; what is wrong comes back as text, without its traceback."""

    def __init__(self, images: Images) -> None:
        self._images = images

    def __getitem__(self, rows: Tensor | slice) -> Tensor | str:
        try:
            return self._images[rows]
        except TstarError as error:
            return str(error)


def stack(image_at: Callable[[int], Any], count: int, size: int | None, name: str) -> Tensor:
    """``count`` images of PIL in memory, uint8, N×3×size×size; ``image_at(i)`` gives image i.

    Each is resized as soon as it is decoded. Without ``size`` all must have one size, which they keep.
    """
    if count == 0:
        raise TstarError(f"{name} must hold images, but has none.")
    first = _pixels(image_at(0), size)

    def read(index: int) -> Tensor:
        return _same_shape(_pixels(image_at(index), size), first.shape, name) if index else first

    return stacked(read, range(count), first.shape)


def stacked(read: Callable[[int], Tensor], rows: Sequence[int], shape: Sequence[int]) -> Tensor:
    """``read(row)`` of each row, side by side."""
    result = torch.empty((len(rows), *shape), dtype=torch.uint8)

    def fill(place: int) -> None:
        result[place] = read(rows[place])

    # Decoding releases Python's lock. Each thread writes to its own place, so order cannot matter.
    threads = 1 if get_worker_info() else min(8, os.cpu_count() or 1)  # loaders are many already
    with ThreadPoolExecutor(threads) as pool:
        # In parts: bounds the number of waiting tasks, and how much is read after an error.
        for start in range(0, len(rows), _TOGETHER):
            list(pool.map(fill, range(start, min(len(rows), start + _TOGETHER))))
    return result


def streamed(x: object) -> Images | None:
    """The images, if that is what stands for a tensor."""
    return x if isinstance(x, Images) else None


def take(x: Tensor, rows: Tensor) -> Tensor:
    """Those samples; of images that do not fit into memory, still as files."""
    files: Any = streamed(x)
    taken: Tensor = x[rows] if files is None else files.take(rows)
    return taken


def pieces(x: Tensor) -> Iterator[tuple[int, Tensor]]:
    """All samples, of images that do not fit into memory a part at a time; each with the place it starts at."""
    step = _TOGETHER if streamed(x) else len(x)
    for start in range(0, len(x), step):
        yield start, x[start : start + step]


def join(parts: Sequence[Tensor]) -> Tensor:
    """One after the other, all in memory or none."""
    images = [part for part in map(streamed, parts) if part is not None]
    if not images:
        return torch.cat(list(parts))
    if len(images) < len(parts):
        raise TstarError(
            "Joined images must all fit into memory, or none; "
            f"set {MEMORY}=0 to read all of them from their files."
        )
    every: Any = Images([f for i in images for f in i.files], images[0].size, images[0].name)
    joined: Tensor = every
    return joined


def fit_in_memory(*parts: Images) -> bool:
    """Whether the decoded images take at most half of this machine's memory, or ``$TSTAR_MEMORY_MB``."""
    return sum(part.numel() for part in parts) <= most_held()


def _pixels(image: Any, size: int | None) -> Tensor:
    image = open_image(image) if isinstance(image, Path) else image
    pixels = torch.from_numpy(from_pil(image).transpose(2, 0, 1).copy())
    return pixels if size is None else area_resize(pixels, size)


def _same_shape(image: Tensor, shape: Sequence[int], name: str) -> Tensor:
    if image.shape != torch.Size(shape):
        old, new = ("×".join(map(str, s[:0:-1])) for s in (tuple(shape), tuple(image.shape)))
        raise TstarError(
            f"Images of {name} must have one size, but got {old} and {new} pixels; pass size=, "
            "e.g. size=32, to bring them to one."
        )
    return image
