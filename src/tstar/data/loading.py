"""From a name or a path to a data set."""

from __future__ import annotations

import os
from pathlib import Path

from tstar.data.dataset import DataSet
from tstar.data.files import read_npz
from tstar.errors import unknown

ROOT_VARIABLE = "TSTAR_DATA"


def default_root() -> Path:
    """The folder that names are looked up in: ``$TSTAR_DATA``, else ``~/.cache/tstar``."""
    return Path(os.environ.get(ROOT_VARIABLE) or Path.home() / ".cache" / "tstar")


def names() -> list[str]:
    """The data sets that have a name of their own."""
    return ["digits"]


def load(
    name_or_path: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    size: int | None = None,
    download: bool = False,
) -> DataSet:
    """The data set of this name, or in this file or folder below ``root``."""
    name = os.fspath(name_or_path)
    base = Path(root) if root is not None else default_root()
    if name == "digits":
        from tstar.data.digits import read_digits

        return read_digits(size)
    for candidate in (base / name, base / f"{name}.npz", Path(name)):
        if candidate.suffix == ".npz" and candidate.is_file():
            return read_npz(candidate, candidate.stem, size)
    raise unknown("data set", name, names())
