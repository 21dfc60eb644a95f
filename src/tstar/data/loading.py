"""From a name or a path to a data set."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import Any

from tstar import own
from tstar.data import cifar100
from tstar.data.catalogue import CATALOGUE
from tstar.data.dataset import DataSet
from tstar.data.files import read_npz
from tstar.data.folders import read_folder
from tstar.data.joining import join, split_names
from tstar.data.text import DIMENSIONS, read_text, text_files, text_name
from tstar.data.yours import from_function
from tstar.errors import TstarError, shown
from tstar.numbers import whole

ROOT_VARIABLE = "TSTAR_DATA"


class NotFoundError(TstarError):
    """Data that are neither in the catalogue nor below the root."""


def default_root() -> Path:
    """The folder that names are looked up in: ``$TSTAR_DATA``, else ``~/.cache/tstar``."""
    return Path(os.environ.get(ROOT_VARIABLE) or Path.home() / ".cache" / "tstar")


def names() -> list[str]:
    """The data sets that have a name of their own."""
    return sorted([*CATALOGUE, *(f"cifar100{suffix}" for suffix in cifar100.SUFFIXES)])


def load(
    name_or_path: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    size: int | None = None,
    download: bool = False,
    text_features: int = DIMENSIONS,
) -> DataSet:
    """The data set of this name (see :func:`names`), or in this file or folder.

    A path is looked up below ``root`` first, then as it is given. ``.npz`` may be left out, and
    ``NAME`` finds ``NAME_train.csv`` with ``NAME_test.csv``. ``size`` brings images to size×size
    pixels by area averaging; data sets whose images differ in size need it. Nothing is fetched
    unless ``download`` is true. ``text_features`` is D of text.

    Names joined by ``+`` are one task of all their classes (:func:`tstar.data.joining.join`):
    ``load("cifar100+tiny-imagenet", size=32)`` has 300 classes.

    ``module:name`` or ``file.py:name`` is a function of your own (:mod:`tstar.own`), called as ``f(root, size)``,
    that returns x_train, y_train, x_test and y_test, or a ``DataSet``.

    >>> load("digits")
    DataSet('digits': image, 1,438 train / 359 test, 1×8×8 uint8, 10 classes)
    """
    name = _checked(name_or_path)
    base = _base(root)
    if size is not None:
        whole("size", size, least=1)
    whole("text_features", text_features, least=1)
    entry = CATALOGUE.get(name.lower())
    if entry is not None:
        return entry.read(base, size, download)
    reference = own.named(name, "tstar.data")
    if reference is not None:
        return from_function(reference, base, size)
    path = locate(name, base)
    if path is not None:
        return _read(path, size, text_features)
    if "+" in name:
        return join(
            [
                load(one, root=base, size=size, download=download, text_features=text_features)
                for one in split_names(name)
            ],
            name,
        )
    suffix = cifar100.suffix_of(name)
    if suffix:
        fine = load(name.removesuffix(suffix), root=base, size=size, download=download)
        return cifar100.derive(fine, suffix)
    raise _not_found(name, base)


def locate(
    name_or_path: str | os.PathLike[str], root: str | os.PathLike[str] | None = None
) -> Path | None:
    """The file or folder that is meant: below the root first, then as it is given.

    ``None`` for the names of the catalogue, and where there is nothing.
    """
    name = _checked(name_or_path)
    base = _base(root)
    if name.lower() in CATALOGUE:
        return None
    given = _expanded(name)
    for path in (base / name, given) if name.strip("./") else (given,):
        try:
            if path.is_dir():
                return path
            archive = path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz")
            for file in (archive, *text_files(path)):
                if file.is_file():
                    return file
            exists = path.exists()
        except (OSError, ValueError) as error:
            raise TstarError(f"{name[:80]!r} cannot be the name of a file: {error}") from error
        if exists:
            raise TstarError(
                f"{path} must be an .npz file, a CSV file of text or a folder of images, but its name "
                f"ends in {path.suffix or 'nothing'!r}, or it is not a regular file."
            )
    return None


def takes_size(name_or_path: str | os.PathLike[str]) -> bool:
    """Whether ``size`` can be given for what has this name: not for a function of your own that takes none."""
    reference = own.named(_checked(name_or_path), "tstar.data")
    return reference is None or own.takes(own.load(reference), "size")


def _base(root: Any) -> Path:
    """The folder that names are looked up in."""
    if root is None:
        return default_root()
    if not isinstance(root, str | os.PathLike) or not isinstance(os.fspath(root), str):
        raise TstarError(f"root must be the path of a folder, got {shown(root)}.")
    return _expanded(root)


def _expanded(path: str | os.PathLike[str]) -> Path:
    """A path with its ~; of a user whom nobody knows, as it is written."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _checked(name: Any) -> str:
    if not isinstance(name, str | os.PathLike) or not isinstance(os.fspath(name), str):
        raise TstarError(
            f"A data set must be given by its name or path, got {type(name).__name__}."
        )
    text = str(os.fspath(name))
    if not text.strip():
        raise TstarError("A data set must be given by its name or path, got an empty text.")
    return text


def _read(path: Path, size: int | None, text_features: int) -> DataSet:
    if path.is_dir():
        return read_folder(path, size)
    if path.suffix == ".npz":
        data = read_npz(path, size)
    else:
        files = text_files(path)
        data = read_text(files, text_name(path), text_features)
    if size is not None and data.domain != "image":
        raise TstarError(
            f"size is for images, but {data.name} holds {data.domain} samples and got size={size}; "
            "leave it out."
        )
    return data


def _not_found(name: str, root: Path) -> NotFoundError:
    """An unknown name: where it was looked for, and what is near it."""
    if os.sep in name or name.endswith((".npz", ".csv")):
        return NotFoundError(
            f"{name[:200]} was not found below {root} or in this folder; check the path, or set root=… or TSTAR_DATA to the folder that holds it."
        )
    near = _near(name, root)
    hint = (
        f"did you mean {' or '.join(map(repr, near))}?"
        if near
        else "put it there, or set root=… or TSTAR_DATA to the folder that holds it."
    )
    return NotFoundError(
        f"{shown(name)} is neither a data set of the catalogue (tstar data ls) nor a file or folder below the data root "
        f"({root}); {hint}"
    )


def _near(name: str, root: Path) -> list[str]:
    """Names that may be meant: of the catalogue, and of what lies below the root."""
    below = root.iterdir() if root.is_dir() else iter(())
    files = {p.name.removesuffix(".npz").removesuffix("_train.csv") for p in below if _is_data(p)}
    key, known = _squeezed(name), {_squeezed(each): each for each in names()}
    # cifar100_32 is a file of smaller images, not a slip of cifar100.
    typos = [
        known[near]
        for near in difflib.get_close_matches(key, known, cutoff=0.85)
        if not key.removeprefix(near).isdecimal()
    ]
    return list(dict.fromkeys([*typos, *difflib.get_close_matches(name, files)]))[:3]


def _squeezed(name: str) -> str:
    return re.sub(r"[-_ ]", "", name.lower())


def _is_data(path: Path) -> bool:
    return path.suffix == ".npz" or path.name.endswith("_train.csv") or path.is_dir()
