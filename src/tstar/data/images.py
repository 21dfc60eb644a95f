"""Image files into one uint8 array: streamed, in several threads, with bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tstar.data.dataset import DataSet
from tstar.data.resize import area_resize
from tstar.data.splits import TEST_FRACTION, TEST_SEED, stratified
from tstar.errors import TstarError, require

EXTENSIONS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".webp", ".tif", ".tiff"})


def stack(open_image: Callable[[int], Any], count: int, size: int | None, name: str) -> Tensor:
    """``count`` images as uint8, N×3×size×size; ``open_image(i)`` gives image i as PIL has it.

    Each image is resized as soon as it is decoded, so that only the result is held in memory.
    Without ``size`` all images must have one size, which they keep.
    """
    if count == 0:
        raise TstarError(f"{name} must hold images, but has none.")
    first = _pixels(open_image(0), size)
    result = torch.empty((count, *first.shape), dtype=torch.uint8)

    def fill(index: int) -> None:
        image = first if index == 0 else _pixels(open_image(index), size)
        if image.shape != result.shape[1:]:
            old, new = ("×".join(map(str, s)) for s in (result.shape[:1:-1], image.shape[:0:-1]))
            raise TstarError(
                f"Images of {name} must have one size, but got {old} and {new} pixels; pass size=, "
                "e.g. size=32, to bring them to one."
            )
        result[index] = image

    # Decoding releases Python's lock. Each thread writes to its own place, so order cannot matter.
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        step = 1024  # bounds the number of waiting tasks, and how much is read after an error
        for start in range(0, count, step):
            list(pool.map(fill, range(start, min(count, start + step))))
    return result


def _pixels(image: Any, size: int | None) -> Tensor:
    array = np.asarray(image.convert("RGB"))
    pixels = torch.from_numpy(array.transpose(2, 0, 1).copy())
    return pixels if size is None else area_resize(pixels, size)


def stack_files(paths: Sequence[Path], size: int | None, name: str) -> Tensor:
    """The images in these files; see :func:`stack`."""
    pil = require("PIL.Image", "vision")

    def open_image(index: int) -> Any:
        path = paths[index]
        try:
            with pil.open(path) as image:
                return image.convert("RGB")
        except (OSError, ValueError, SyntaxError, pil.DecompressionBombError) as error:
            raise TstarError(
                f"{path} of {name} must be a readable image, but: {error}; repair or remove it."
            ) from error

    return stack(open_image, len(paths), size, name)


def from_files(
    name: str,
    classes: Sequence[str],
    train: Sequence[tuple[Path, int]],
    test: Sequence[tuple[Path, int]] | None,
    size: int | None,
) -> DataSet:
    """A data set from (file, label) pairs; without ``test``, a seeded, stratified fifth is the test part."""
    if test is None:
        y = torch.tensor([label for _, label in train], dtype=torch.int64)
        rest, drawn = stratified(y, round(len(y) * TEST_FRACTION), TEST_SEED)
        train, test = [train[i] for i in rest.tolist()], [train[i] for i in drawn.tolist()]
    x_train, x_test = (
        stack_files([path for path, _ in part], size, name) for part in (train, test)
    )
    y_train, y_test = (
        torch.tensor([y for _, y in part], dtype=torch.int64) for part in (train, test)
    )
    return DataSet(name, "image", x_train, y_train, x_test, y_test, tuple(classes))


def read_folder(path: Path, name: str, size: int | None) -> DataSet:
    """A folder ``{train,test}/CLASS/*.jpg`` (or .png, …), classes in alphabetical order.

    ``{train,val}`` without ``test`` takes ``val`` for the test part; with both, ``val`` joins the
    training part, since every run holds out a validation part of its own. A folder ``CLASS/*.jpg``
    without parts gets a seeded, stratified fifth as its test part.
    """
    if not (path / "train").is_dir():
        classes = _class_names(path, name)
        return from_files(name, classes, _samples(path, classes), None, size)
    classes = _class_names(path / "train", name)
    has_test, has_val = (path / "test").is_dir(), (path / "val").is_dir()
    if not (has_test or has_val):
        raise TstarError(
            f"{path} must hold test/CLASS/* besides train/CLASS/*, but has neither test nor val."
        )
    train = _samples(path / "train", classes)
    test = _samples(path / ("test" if has_test else "val"), classes)
    if has_test and has_val:
        train += _samples(path / "val", classes)
    return from_files(name, classes, train, test, size)


def _class_names(folder: Path, name: str) -> list[str]:
    classes = sorted(entry.name for entry in folder.iterdir() if _is_class(entry))
    if len(classes) < 2:
        raise TstarError(
            f"{name} must have a folder of images for each of at least two classes, but {folder} has "
            f"{len(classes)} such folders; the layout is {{train,test}}/CLASS/*.jpg."
        )
    return classes


def _is_class(entry: Path) -> bool:
    return entry.is_dir() and not entry.name.startswith(".")


def _samples(folder: Path, classes: Sequence[str]) -> list[tuple[Path, int]]:
    number = {name: label for label, name in enumerate(classes)}
    strange = sorted(e.name for e in folder.iterdir() if _is_class(e) and e.name not in number)
    if strange:
        raise TstarError(
            f"Classes of {folder} must occur in the training part, but {strange[0]!r} does not."
        )
    return [
        (file, label)
        for name, label in number.items()
        if (folder / name).is_dir()
        for file in sorted((folder / name).iterdir())
        if file.suffix.lower() in EXTENSIONS
    ]
