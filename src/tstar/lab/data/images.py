"""Image files as an array of pixels, in memory or, if they do not fit, mapped from a file."""

from __future__ import annotations

import math
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from tstar.difficulty import area_resize, from_pil
from tstar.errors import TstarError, guarded
from tstar.imports import require
from tstar.lab.data.dataset import DataSet, test_rows
from tstar.samples import memory_limit

# What a file holds counts, not how it is called: PostScript, which is a program, is never run.
_FORMATS = ("PNG", "JPEG", "BMP", "PPM", "WEBP", "TIFF", "GIF")
_PART = 1 << 27  # bytes that are decoded at once
Files: TypeAlias = list[tuple[Path, int]]  # and their labels
_large = threading.Lock()  # images of 4 million pixels and more are decoded one at a time


class Folder(NamedTuple):
    """The images of a folder with their labels; ``test`` is ``None`` if it has no parts."""

    name: str
    classes: tuple[str, ...]
    train: Files
    test: Files | None


def find_images(path: Path) -> Folder:
    """A folder ``{train,test}/CLASS/*.jpg`` (or .png, …), classes in alphabetical order.

    ``{train,val}`` without ``test`` takes ``val`` for the test part; with both, ``val`` joins the
    training part, since every run holds out a validation part of its own. A folder ``CLASS/*.jpg``
    has no parts. Hidden files are left out.
    """
    base = path / "train" if (path / "train").is_dir() else path
    classes, test = _class_names(base), None
    if len(classes) < 2:
        raise TstarError(
            f"{base} must have a folder of images for each of two or more classes, but has "
            f"{len(classes)}; the layout is CLASS/*.jpg or {{train,test}}/CLASS/*.jpg."
        )
    train = _files(base, classes)
    if base != path:
        parts = [path / part for part in ("test", "val") if (path / part).is_dir()]
        test, *more = [_files(part, classes) for part in parts] or [[]]
        train = sum(more, train)
    if not train:
        raise TstarError(f"{path} must hold images, but its {len(classes)} folders have none.")
    return Folder(path.resolve().name, classes, train, test)


def read_folder(path: Path, size: int | None) -> DataSet:
    """The folder as a data set; without parts, a seeded, stratified fifth is the test part."""
    found = find_images(path)
    if found.test == []:
        raise TstarError(
            f"{path} must hold test/CLASS/* besides train/CLASS/*, but has neither test nor val."
        )
    return from_files(*found, size)


def from_files(
    name: str, classes: Sequence[str], train: Files, test: Files | None, size: int | None
) -> DataSet:
    """A data set from (file, label) pairs; without ``test``, a stratified fifth is drawn."""
    if test is None:
        rows = test_rows(torch.tensor([label for _, label in train]))
        train, test = ([train[i] for i in part.tolist()] for part in rows)

    def read(part: Files) -> tuple[Tensor, Tensor]:
        x = stack(lambda row: decode(part[row][0], size), len(part), name)
        return x, torch.tensor([label for _, label in part], dtype=torch.int64)

    return DataSet(name, "image", *read(train), *read(test), tuple(classes))


def _class_names(folder: Path) -> tuple[str, ...]:
    folders = (e.name for e in folder.iterdir() if e.is_dir())
    return tuple(sorted(name for name in folders if not name.startswith(".")))


def _files(folder: Path, classes: Sequence[str]) -> Files:
    strange = sorted({*_class_names(folder)} - {*classes})
    if strange:
        raise TstarError(
            f"Classes of {folder} must occur in the training part, but {strange[0]!r} does not."
        )
    reader = require("torchvision.datasets.folder", "vision")
    labels = {name: label for label, name in enumerate(classes) if (folder / name).is_dir()}
    found = reader.make_dataset(str(folder), labels, reader.IMG_EXTENSIONS, allow_empty=True)
    return [(Path(file), y) for file, y in found if not Path(file).name.startswith(".")]


def decode(path: Path, size: int | None = None) -> np.ndarray:
    """An image file as (3, H, W) pixels, or (3, size, size)."""
    pil = require("PIL.Image", "vision")
    if not path.is_file():  # a pipe would block
        raise TstarError(f"{path} must be a readable image, but is not a regular file.")
    with (
        guarded(f"{path} must be a readable image (repair or remove it), but reading it failed"),
        pil.open(path, formats=_FORMATS) as image,
        _large if image.width * image.height > 1 << 22 else nullcontext(),
    ):
        return pixels_of(image, size)


def pixels_of(image: Any, size: int | None) -> np.ndarray:
    """An image of PIL as (3, H, W)."""
    pixels = np.moveaxis(from_pil(image), -1, 0)
    return pixels if size is None else area_resize(pixels, size)


def resized(images: Tensor, size: int | None) -> Tensor:
    """Images N×C×H×W in memory at size×size."""
    if size is None:
        return images
    if math.prod(images.shape[:-2]) * size**2 > memory_limit():
        raise TstarError(f"Images at size={size} do not fit into memory; pass a smaller size.")
    return torch.from_numpy(area_resize(images.numpy(), size))


def stack(image_at: Callable[[int], np.ndarray], count: int, name: str) -> Tensor:
    """``image_at(i)`` of ``count`` images of one size, side by side, uint8, N×3×H×W.

    What would take more than a quarter of the memory is kept in a temporary file and mapped.
    """
    if count == 0:
        raise TstarError(f"{name} must hold images, but has none.")
    shape = image_at(0).shape
    each = math.prod(shape)
    fits, together = count * each <= memory_limit() // 2, max(1, min(1024, _PART // each))
    result = np.empty((count if fits else 0, *shape), np.uint8)

    def checked(row: int) -> np.ndarray:
        pixels = image_at(row)
        if pixels.shape != shape:
            old, new = ("×".join(map(str, s[:0:-1])) for s in (shape, pixels.shape))
            raise TstarError(
                f"Images of {name} must have one size, but got {old} and {new} pixels; pass "
                "size=, e.g. size=32, to bring them to one."
            )
        return pixels

    # Decoding releases Python's lock. In parts: bounds what waits, and what an error costs.
    with tempfile.TemporaryFile() as file, ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for start in range(0, count, together):
            part = np.stack([*pool.map(checked, range(start, min(count, start + together)))])
            if fits:
                result[start : start + together] = part
            else:
                with guarded(f"{tempfile.gettempdir()} must have room for these images"):
                    file.write(np.ascontiguousarray(part).data)
        # "c" (copy on write): torch warns of arrays that cannot be written.
        mapped = result if fits else np.memmap(file, np.uint8, "c", shape=(count, *shape))
        return torch.from_numpy(mapped)
