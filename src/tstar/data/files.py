""".npz files: samples, labels, and class names as plain arrays."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tstar.data.dataset import DataSet
from tstar.data.limits import check_unpacked, parsing
from tstar.data.resize import area_resize
from tstar.data.splits import test_rows
from tstar.data.validation import BY_DIMENSIONS, Domain
from tstar.errors import TstarError

_PAIRS = [("x_train", "y_train"), ("x", "y"), ("X", "y"), ("data", "labels"), ("images", "labels")]
_PAIRS += [("data", "target"), ("arr_0", "arr_1")]
_TEST = ("x_test", "y_test")


@dataclass(frozen=True, eq=False)
class Stored:
    """The arrays of a file; ``test`` is (samples, labels) where it has such a part."""

    x: np.ndarray
    y: np.ndarray
    test: tuple[np.ndarray, np.ndarray] | None
    names: np.ndarray | None
    domain: str


def read_arrays(path: Path) -> Stored:
    """The arrays of an ``.npz`` file, looked at for their size first. Pickled arrays are refused."""
    with parsing(path, "an .npz file of plain arrays (no pickles)"):
        with zipfile.ZipFile(path) as archive:
            needed = sum(member.file_size for member in archive.infolist())
        check_unpacked(path, needed, path.stat().st_size)
        # Opened here: NumPy leaves a file that it cannot read open.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            keys = next(((x, y) for x, y in _PAIRS if x in file.files and y in file.files), None)
            if keys is None:
                raise TstarError(
                    f"{path} must hold samples and labels under known names (x_train and y_train, x and "
                    f"y, data and labels, …), but holds {', '.join(file.files) or 'nothing'}."
                )
            x, y = (file[key] for key in keys)
            has_test = all(key in file.files for key in _TEST)
            test = (file["x_test"], file["y_test"]) if has_test else None
            names, domain = (file[k] if k in file.files else None for k in ("classes", "domain"))
    for key, array in zip((*keys, *_TEST), (x, y, *(test or ())), strict=False):
        if not isinstance(array, np.ndarray) or array.ndim == 0:
            raise TstarError(f"{key} of {path} must be an array with one row per sample.")
        if not array.nbytes:  # rows of nothing can be any number of them
            raise TstarError(
                f"{key} of {path} must hold values, but its {len(array):,} rows are empty."
            )
    return Stored(x, y, test, names, "" if domain is None else str(domain))


def read_npz(path: Path, size: int | None) -> DataSet:
    """A ``.npz`` file with ``x_train, y_train, x_test, y_test`` and, if you like, ``classes``.

    N×H×W×C uint8 (or N×H×W, gray) are images, N×C×L floats signals, N×D numbers vectors. Labels are
    0…K−1, or strings. ``x`` and ``y`` do as well; without a test part a seeded, stratified fifth
    becomes one.
    """
    stored = read_arrays(path)
    if stored.test is None:
        x, domain = samples(stored.x, f"x_train of {path.name}")
        y, _, classes = labels(stored.y, stored.y, stored.names, path.name)
        if len(y) != len(x):
            raise TstarError(f"{path} has {len(x)} samples and {len(y)} labels.")
        rest, drawn = test_rows(y)
        x_train, y_train, x_test, y_test = x[rest], y[rest], x[drawn], y[drawn]
    else:
        (x_train, x_test), domain = both_samples(stored.x, stored.test[0], path.name)
        y_train, y_test, classes = labels(stored.y, stored.test[1], stored.names, path.name)
    if domain == "vector" and stored.domain == "text":
        domain = "text"
    if domain == "image" and size is not None:
        x_train, x_test = area_resize(x_train, size), area_resize(x_test, size)
    return DataSet(path.stem, domain, x_train, y_train, x_test, y_test, classes)


def write_npz(data: DataSet, path: Path) -> None:
    """Write ``data`` as a ``.npz`` file that :func:`read_npz` gives back with the same checksum.

    A data set of many image files is then read at once, and needs no decoding in each process.
    """
    images = data.domain == "image"
    arrays = {key: getattr(data, key).numpy() for key in ("x_train", "y_train", *_TEST)}
    for key in ("x_train", "x_test") if images else ():
        arrays[key] = arrays[key].transpose(0, 2, 3, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path, classes=np.array(data.classes), domain=np.array(data.domain), **arrays
    )


def both_samples(train: Any, test: Any, name: str) -> tuple[tuple[Tensor, Tensor], Domain]:
    """The samples of the two parts, which must be of one kind."""
    x, domain = samples(train, f"x_train of {name}")
    x_test, other = samples(test, f"x_test of {name}")
    if domain != other:
        raise TstarError(
            f"x_train and x_test of {name} must be of one kind, but got {domain} and {other}."
        )
    return (x, x_test), domain


def samples(x: Any, what: str) -> tuple[Tensor, Domain]:
    """The samples as a tensor of their domain's dtype and order of dimensions, which a tensor has already."""
    if isinstance(x, Tensor) and x.ndim in BY_DIMENSIONS:
        x = x.detach().cpu().contiguous()
        return (x if x.dtype == torch.uint8 and x.ndim == 4 else x.float()), BY_DIMENSIONS[x.ndim]
    x = np.asarray(x)
    if x.dtype == np.uint8 and x.ndim in (3, 4):
        if x.ndim == 3:
            x = x[..., None]
        if x.shape[-1] not in (1, 3, 4) and x.shape[1] in (1, 3, 4):
            raise TstarError(
                f"Images must be N×H×W×C, but {what} is {x.shape}, which looks like N×C×H×W; "
                "use x.transpose(0, 2, 3, 1)."
            )
        return torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2))), "image"
    if x.ndim == 4:
        raise TstarError(
            f"Images must be uint8 (0…255), but {what} is {x.dtype}; use (x * 255).round().astype('uint8') "
            "if its values are in [0, 1]."
        )
    if x.ndim not in (2, 3) or x.dtype.kind not in "fiu":
        raise TstarError(
            f"{what} must be N×H×W×C uint8 (images), N×C×L floats (signals) or N×D numbers (vectors), "
            f"but is {x.shape} of {x.dtype}."
        )
    return torch.from_numpy(x.astype(np.float32)), "signal" if x.ndim == 3 else "vector"


def labels(
    train: np.ndarray, test: np.ndarray, names: np.ndarray | None, what: str
) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Labels as int64 and the class names; strings are numbered in alphabetical order."""
    for part, y in (("y_train", train), ("y_test", test)):
        if y.ndim != 1:
            raise TstarError(
                f"{part} of {what} must have one label per sample, got shape {y.shape}; one-hot labels need an argmax first."
            )
    if train.dtype.kind in "US":
        if names is not None:
            raise TstarError(f"{what} must not hold both string labels and classes; drop classes.")
        found, numbers = np.unique(train, return_inverse=True)
        strange = sorted(set(_text(test).tolist()) - set(_text(found).tolist()))
        if strange:
            raise TstarError(
                f"Test labels of {what} must occur in its training part, but {strange[0]!r} does not."
            )
        places = np.searchsorted(found, test.astype(found.dtype))
        return _int64(numbers), _int64(places), tuple(_text(found).tolist())
    most = train.size if names is None else min(train.size, names.size)
    for part, y in (("y_train", train), ("y_test", test)):
        whole = y.dtype.kind in "iu" or (
            y.dtype.kind == "f" and bool(np.all(np.isfinite(y) & (y == np.round(y))))
        )
        if not whole:
            raise TstarError(
                f"{part} of {what} must hold whole numbers or strings, but is {y.dtype}."
            )
        # Before anything is made for each of them: a label of 10⁷ needs no list of 10⁷ names.
        if y.size and int(y.max()) >= max(most, 1):
            raise TstarError(
                f"Labels of {what} must be 0…K−1 without gaps, but {part} has a label {int(y.max())}, which "
                f"does not occur among {most} classes; renumber them, e.g. with numpy.unique(y, return_inverse=True)."
            )
    if names is not None and names.size > train.size:
        raise TstarError(
            f"{what} names {names.size} classes, but has {train.size} training labels."
        )
    if names is None:
        highest = int(train.max()) if train.size else -1
        return _int64(train), _int64(test), tuple(map(str, range(highest + 1)))
    return _int64(train), _int64(test), tuple(_text(names).ravel().tolist())


def _text(names: np.ndarray) -> np.ndarray:
    """Names as text; NumPy reads bytes as ASCII alone."""
    return (
        np.char.decode(names, "utf-8", "backslashreplace")
        if names.dtype.kind == "S"
        else names.astype(str)
    )


def _int64(y: np.ndarray) -> Tensor:
    return torch.from_numpy(y.astype(np.int64))
