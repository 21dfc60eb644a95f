"""One read-only copy of a data set for all workers of a machine: plain files, mapped."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from tstar.errors import TstarError
from tstar.lab.data import DataSet
from tstar.lab.data.dataset import ARRAYS
from tstar.lab.data.images import resized

_FACTS = "data.json"
_OURS = re.compile(r"[0-9a-f]{16}(\.part)?")  # as place() and save() name what they write
_checksums: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


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
    """Write the arrays, whole or not at all."""
    part = path.with_suffix(".part")
    part.mkdir(parents=True, exist_ok=True)
    names = ("name", "domain", "classes", "texts")
    facts = {name: getattr(data, name) for name in names}
    for field in ARRAYS:
        np.save(part / f"{field}.npy", getattr(data, field).contiguous().numpy())
    (part / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
    part.replace(path)


def save_given(data: DataSet, folder: Path, name: str, size: int | None) -> None:
    """Write a set that a script has in memory; its images at a size, if one is asked for."""
    if size is not None:
        if data.domain != "image":
            raise TstarError(f"size is for images, but {data.name} holds {data.domain} samples.")
        x_train, x_test = (resized(x, size) for x in (data.x_train, data.x_test))
        data = replace(data, x_train=x_train, x_test=x_test)
    path = place(folder, name, size)
    if not is_shared(path):  # by another study of this sweep
        save(data, path)


def is_shared(path: str | Path) -> bool:
    return (Path(path) / _FACTS).is_file()


def load(path: str | Path) -> DataSet:
    """The data set with its arrays mapped into memory."""
    facts = json.loads((Path(path) / _FACTS).read_text(encoding="utf-8"))
    # "c" (copy on write): torch warns of arrays that cannot be written.
    x, y, x_test, y_test = (
        torch.from_numpy(np.load(Path(path) / f"{field}.npy", mmap_mode="c")) for field in ARRAYS
    )
    classes, texts = tuple(facts["classes"]), facts["texts"] and tuple(map(tuple, facts["texts"]))
    return DataSet(facts["name"], facts["domain"], x, y, x_test, y_test, classes, texts)


def checksum(data: DataSet) -> str:
    """The data's checksum, computed once for as long as they stay in memory."""
    if data not in _checksums:
        _checksums[data] = data.checksum()
    return _checksums[data]
