"""Files are written whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A path to write to, whose file takes the place of ``path`` once it is on the disk.

    Several threads and processes may write one file: the last one stays.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        yield part
        with part.open("rb+") as file:  # a rename may reach the disk before the content does
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
