"""One read-only copy of a data set for all workers of a machine: plain files, mapped into memory.

Of images that do not fit into memory it is the list of their files, and the checksum that was computed once.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tstar.errors import TstarError

if TYPE_CHECKING:
    from tstar.data import DataSet

_ARRAYS = ("x_train", "y_train", "x_test", "y_test")
_FACTS = "data.json"
WORTHWHILE = 2**24  # bytes; smaller sets are read by each worker
_checksums: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def folder_of(store: Path) -> Path:
    """This process's folder, next to the store; those of processes of this host that are gone are removed."""
    start = f"{store.name}.data-{socket.gethostname()}-"
    for old in store.parent.glob(f"{start}*"):
        pid = old.name.removeprefix(start)
        if pid.isdigit() and not process_exists(int(pid)):
            shutil.rmtree(old, ignore_errors=True)
    return store.with_name(f"{start}{os.getpid()}")


def place(folder: str | Path, name: str, size: int | None) -> Path:
    return Path(folder) / hashlib.sha256(f"{name} {size}".encode()).hexdigest()[:16]


def save(data: DataSet, path: Path) -> None:
    """Write the arrays, whole or not at all."""
    import numpy as np

    from tstar.data.images import streamed

    part = path.with_suffix(".part")
    try:
        part.mkdir(parents=True, exist_ok=True)
        facts: dict[str, Any] = {"name": data.name, "domain": data.domain, "classes": data.classes}
        for field in _ARRAYS:
            values = getattr(data, field)
            if (images := streamed(values)) is None:
                np.save(part / f"{field}.npy", values.contiguous().numpy())
            else:
                facts[field], facts["size"] = images.files, images.size
                facts["checksum"] = checksum(data)
        (part / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
        part.replace(path)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise TstarError(f"The data could not be written to {str(path)!r}: {error}.") from error


def is_shared(path: str | Path) -> bool:
    return (Path(path) / _FACTS).is_file()


def load(path: str | Path) -> DataSet:
    """The data set with its arrays mapped into memory: pages are read when they are used, and shared."""
    import numpy as np
    import torch

    from tstar.data import DataSet
    from tstar.data.images import Images

    facts = json.loads((Path(path) / _FACTS).read_text(encoding="utf-8"))
    # "c" (copy on write) only because torch warns of arrays that cannot be written; nobody writes.
    arrays: list[Any] = [
        Images(facts[field], facts["size"], facts["name"])
        if field in facts
        else torch.from_numpy(np.load(Path(path) / f"{field}.npy", mmap_mode="c"))
        for field in _ARRAYS
    ]
    x, y, x_test, y_test = arrays
    classes = tuple(facts["classes"])
    data = DataSet(facts["name"], facts["domain"], x, y, x_test, y_test, classes)
    if "checksum" in facts:
        _checksums[data] = facts["checksum"]
    return data


def checksum(data: DataSet) -> str:
    """The data's checksum, computed once for as long as they stay in memory."""
    known = _checksums.get(data)
    if known is None:
        known = _checksums[data] = data.checksum()
    return known


def worthwhile(data: DataSet) -> bool:
    """Whether it is worth sharing between workers. Texts are not kept in arrays."""
    x = data.x_train
    return data.texts is None and x.numel() * x.element_size() >= WORTHWHILE


def process_exists(pid: int) -> bool:
    if os.name == "nt":  # there, signal 0 is Ctrl-C: only the lease tells
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists and belongs to someone else
        return True
    return True
