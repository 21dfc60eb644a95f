"""Folders of image files: what they hold, in memory where that is large enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tstar.data.dataset import DataSet
from tstar.data.images import Images, fit_in_memory
from tstar.data.limits import open_image
from tstar.data.splits import test_rows
from tstar.errors import TstarError

EXTENSIONS = frozenset(
    {".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".webp", ".tif", ".tiff", ".gif"}
)
Files = list[tuple[Path, int]]


@dataclass(frozen=True)
class Layout:
    """The (file, label) pairs of a folder; ``test`` is ``None`` where it has no parts."""

    name: str
    classes: tuple[str, ...]
    train: Files
    test: Files | None


def find_images(path: Path) -> Layout:
    """A folder ``{train,test}/CLASS/*.jpg`` (or .png, …), classes in alphabetical order.

    ``{train,val}`` without ``test`` takes ``val`` for the test part; with both, ``val`` joins the
    training part, since every run holds out a validation part of its own. A folder ``CLASS/*.jpg``
    has no parts. Hidden files and those with another ending are left out.
    """
    name = path.resolve().name
    if not (path / "train").is_dir():
        classes = _class_names(path, name)
        found = _files(path, classes)
        if not found:
            raise TstarError(f"{name} must hold images, but its {len(classes)} folders have none.")
        return Layout(name, classes, found, None)
    classes = _class_names(path / "train", name)
    has_test, has_val = (path / "test").is_dir(), (path / "val").is_dir()
    train = _files(path / "train", classes)
    test = _files(path / ("test" if has_test else "val"), classes) if has_test or has_val else []
    if has_test and has_val:
        train += _files(path / "val", classes)
    return Layout(name, classes, train, test)


def read_folder(path: Path, size: int | None) -> DataSet:
    """The folder as a data set; without parts, a seeded, stratified fifth is the test part."""
    found = find_images(path)
    if found.test == []:
        raise TstarError(
            f"{path} must hold test/CLASS/* besides train/CLASS/*, but has neither test nor val."
        )
    return from_files(found.name, found.classes, found.train, found.test, size)


def image_pairs(
    files: Files,
    classes: Sequence[str],
    unreadable: list[str],
    positions: Sequence[int] | None = None,
) -> Iterator[tuple[Any, str]]:
    """(image, class name) of each file; what cannot be read is noted in ``unreadable``."""
    unreadable.clear()
    for file, label in files if positions is None else (files[i] for i in positions):
        try:
            image = open_image(file)
        except TstarError as error:
            unreadable.append(str(error))
            continue
        yield image, classes[label]


def from_files(
    name: str,
    classes: Sequence[str],
    train: Sequence[tuple[Path, int]],
    test: Sequence[tuple[Path, int]] | None,
    size: int | None,
) -> DataSet:
    """A data set from (file, label) pairs; without ``test``, a seeded, stratified fifth is the test part."""
    if test is None:
        rest, drawn = test_rows(torch.tensor([label for _, label in train]))
        train, test = [train[i] for i in rest.tolist()], [train[i] for i in drawn.tolist()]
    # What stands for a tensor is called one.
    images: Any = [Images((path for path, _ in part), size, name) for part in (train, test)]
    held = fit_in_memory(*images)
    x_train, x_test = (part[:] if held else part for part in images)
    y_train, y_test = (
        torch.tensor([y for _, y in part], dtype=torch.int64) for part in (train, test)
    )
    return DataSet(name, "image", x_train, y_train, x_test, y_test, tuple(classes))


def _class_names(folder: Path, name: str) -> tuple[str, ...]:
    classes = tuple(sorted(entry.name for entry in folder.iterdir() if _is_class(entry)))
    if len(classes) < 2:
        raise TstarError(
            f"{name} must have a folder of images for each of at least two classes, but {folder} has "
            f"{len(classes)} such folders; the layout is CLASS/*.jpg or {{train,test}}/CLASS/*.jpg."
        )
    return classes


def _is_class(entry: Path) -> bool:
    return entry.is_dir() and not entry.name.startswith(".")


def _files(folder: Path, classes: Sequence[str]) -> Files:
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
        for file in sorted((folder / name).rglob("*"))
        if file.suffix.lower() in EXTENSIONS and not file.name.startswith(".") and not file.is_dir()
    ]
