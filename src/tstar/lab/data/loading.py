"""From a name or a path to a data set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tstar.errors import TstarError, guarded, shown, unknown, whole
from tstar.lab import own
from tstar.lab.data import cifar100
from tstar.lab.data.catalogue import CATALOGUE
from tstar.lab.data.dataset import DataSet
from tstar.lab.data.files import from_function, read_npz
from tstar.lab.data.images import read_folder
from tstar.lab.data.text import read_text, text_files, text_name


def default_root(root: Any = None) -> Path:
    """The folder that names are looked up in: ``root``, ``$TSTAR_DATA`` or ``~/.cache/tstar``."""
    if root is None:
        return Path(os.environ.get("TSTAR_DATA") or Path.home() / ".cache" / "tstar")
    base = Path(os.path.expanduser(_checked(root)))
    with guarded(f"{shown(root)} cannot be the name of a folder"):
        base.exists()
    return base


def names() -> list[str]:
    """The data sets that have a name of their own."""
    return sorted([*CATALOGUE, *(f"cifar100{suffix}" for suffix in cifar100.SUFFIXES)])


def load(
    name_or_path: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    size: int | None = None,
    download: bool = False,
) -> DataSet:
    """The data set of this name (see :func:`names`), or in this file or folder.

    A path is looked up below ``root`` first, then as it is given. ``.npz`` may be left out, and
    ``NAME`` finds ``NAME_train.csv`` with ``NAME_test.csv``. ``size`` brings images to size×size
    pixels by area averaging; data sets whose images differ in size need it. Nothing is fetched
    unless ``download`` is true.

    ``module:name`` or ``file.py:name`` is a function of your own (:mod:`tstar.lab.own`), called as
    ``f(root, size)``, that returns x_train, y_train, x_test and y_test, or a ``DataSet``.

    >>> load("digits")
    DataSet('digits': image, 1,438 train / 359 test, 1×8×8 uint8, 10 classes)
    """
    name, base = _checked(name_or_path), default_root(root)
    if size is not None:
        whole("size", size, least=1)
    entry = CATALOGUE.get(name.lower())
    if entry is not None:
        return entry.read(base, size, download)
    if own.is_reference(name):
        return from_function(name, base, size)
    path = locate(name, base)
    if path is not None:
        return _read(path, size)
    suffix = cifar100.suffix_of(name)
    if suffix:
        fine = load(name.removesuffix(suffix), root=base, size=size, download=download)
        return cifar100.derive(fine, suffix)
    below = base.iterdir() if base.is_dir() else ()
    files = {p.name.removesuffix(".npz").removesuffix("_train.csv") for p in below}
    raise TstarError(
        f"{unknown('data set', name, {*names(), *files})} It was not found below the data root "
        f"({base}) or in this folder; set root=… or TSTAR_DATA to the folder that holds it."
    )


def locate(
    name_or_path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None
) -> Path | None:
    """The file or folder that is meant: below the root first, then as it is given.

    ``None`` for the names of the catalogue, and if there is nothing.
    """
    name = _checked(name_or_path)
    if name.lower() in CATALOGUE:
        return None
    given = Path(os.path.expanduser(name))
    for path in (default_root(root) / name, given) if name.strip("./") else (given,):
        with guarded(f"{shown(name)} cannot be the name of a file"):
            if path.is_dir():
                return path
            archive = path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz")
            for file in (archive, *text_files(path)):
                if file.is_file():
                    return file
            if path.exists():
                raise TstarError(
                    f"{path} must be an .npz file, a CSV file of text or a folder of images, but "
                    f"its name ends in {path.suffix or 'nothing'!r}, or it is not a regular file."
                )
    return None


def _checked(name: Any) -> str:
    text = os.fspath(name) if isinstance(name, str | os.PathLike) else None
    if not isinstance(text, str) or not text.strip():
        raise TstarError(f"A data set must be given by its name or path, got {shown(name)}.")
    return text


def _read(path: Path, size: int | None) -> DataSet:
    if path.is_dir():
        return read_folder(path, size)
    if path.suffix == ".npz":
        data = read_npz(path, size)
    else:
        data = read_text(text_files(path), text_name(path))
    if size is not None and data.domain != "image":
        raise TstarError(
            f"size is for images, but {data.name} holds {data.domain} samples; leave size out."
        )
    return data
