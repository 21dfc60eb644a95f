"""One copy of a data set for all workers of a machine: a file, mapped."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path

import torch

from tstar.errors import TstarError
from tstar.lab.data import DataSet
from tstar.lab.data.dataset import ARRAYS
from tstar.lab.data.images import resized
from tstar.lab.files import written

# As place() and save() name what they write.
_OURS = re.compile(r"[0-9a-f]{16}|\.[0-9a-f]{16}\.\d+\.\d+\.part")


@contextmanager
def shared_folder(folder: Path) -> Iterator[None]:
    """Inside, the folder is there and empty. What a killed sweep left in it goes, and no more."""
    left = [path.name for path in folder.iterdir()] if folder.exists() else []
    if not all(map(_OURS.fullmatch, left)):
        raise TstarError(
            f"{folder} is needed for the data of a sweep, but no sweep has made it; move it away."
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def place(folder: str | Path, name: str, size: int | None) -> Path:
    return Path(folder) / hashlib.sha256(f"{name} {size}".encode()).hexdigest()[:16]


def save(data: DataSet, path: Path) -> None:
    """Write the data set, whole or not at all."""
    content = {item.name: getattr(data, item.name) for item in fields(DataSet)}
    content |= {name: content[name].contiguous() for name in ARRAYS}
    with written(path) as part:
        torch.save(content, part)


def save_given(data: DataSet, folder: Path, name: str, size: int | None) -> None:
    """Write a set that a script has in memory; its images at a size, if one is asked for."""
    if size is not None:
        if data.domain != "image":
            raise TstarError(f"size is for images, but {data.name} holds {data.domain} samples.")
        x_train, x_test = (resized(x, size) for x in (data.x_train, data.x_test))
        data = replace(data, x_train=x_train, x_test=x_test)
    path = place(folder, name, size)
    if not path.exists():  # else by another study of this sweep
        save(data, path)


def load(path: Path) -> DataSet:
    """The data set with its arrays mapped into memory."""
    return DataSet(**torch.load(path, mmap=True, weights_only=True))
