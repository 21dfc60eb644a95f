""".npz files and arrays of your own: samples, labels, and class names as plain arrays."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tstar.errors import TstarError, guarded
from tstar.lab import own
from tstar.lab.data.dataset import ARRAYS, BY_DIMENSIONS, DataSet, Domain, divided
from tstar.lab.data.images import resized

_PAIRS = [("x_train", "y_train"), ("x", "y"), ("X", "y"), ("data", "labels"), ("images", "labels")]
_PAIRS += [("data", "target"), ("arr_0", "arr_1")]
_TEST = ("x_test", "y_test")


def read_npz(path: Path, size: int | None) -> DataSet:
    """A ``.npz`` file with ``x_train, y_train, x_test, y_test`` and, if you like, ``classes``.

    N×H×W×C uint8 (or N×H×W, gray) are images, N×C×L floats signals, N×D numbers vectors. Labels are
    0…K−1, or strings. ``x`` and ``y`` work as well; without a test part a seeded, stratified fifth
    becomes one.
    """
    with (
        guarded(f"{path} must be an .npz file of plain arrays (no pickles), but reading it failed"),
        path.open("rb") as stream,
        np.load(stream, allow_pickle=False) as file,
    ):
        keys = next(((x, y) for x, y in _PAIRS if x in file.files and y in file.files), None)
        if keys is None:
            raise TstarError(
                f"{path} must hold samples and labels under known names (x_train and y_train, "
                f"x and y, data and labels, …), but holds {', '.join(file.files) or 'nothing'}."
            )
        wanted = [*keys, *(_TEST if all(key in file.files for key in _TEST) else ())]
        arrays = [np.asarray(file[key]) for key in wanted]
        names, domain = (file[k] if k in file.files else None for k in ("classes", "domain"))
    for key, array in zip(wanted, arrays, strict=True):
        if array.ndim == 0 or not array.nbytes:  # rows of nothing can be any number of them
            raise TstarError(f"{key} of {path} must hold values, one row per sample.")
    x, y, *test = arrays
    if not test and len(x) != len(y):
        raise TstarError(f"{path} has {len(x)} samples and {len(y)} labels.")
    data = _made(path.stem, x, y, (test[0], test[1]) if test else None, names, size)
    text = data.domain == "vector" and str(domain) == "text"
    return replace(data, domain="text") if text else data


def write_npz(data: DataSet, path: Path) -> None:
    """Write ``data`` as a ``.npz`` file that :func:`read_npz` gives back with the same checksum."""
    arrays = {key: getattr(data, key)[:].numpy() for key in ARRAYS}
    for key in ("x_train", "x_test") if data.domain == "image" else ():
        arrays[key] = arrays[key].transpose(0, 2, 3, 1)
    names, domain = np.array(data.classes), np.array(data.domain)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, classes=names, domain=domain, **arrays)


def from_function(reference: str, root: str | PathLike[str], size: int | None) -> DataSet:
    """What ``f(root, size)`` returns: a ``DataSet``, or its four arrays."""
    function = own.load(reference)
    if size is not None and not own.takes(function, "size"):
        raise TstarError(f"{reference} takes no size; add it, or leave it out of the study.")
    return from_arrays(reference, own.call(reference, function, root=root, size=size))


def from_arrays(name: str, value: Any) -> DataSet:
    """A ``DataSet`` as it is, or x_train, y_train, x_test and y_test.

    NumPy arrays are as in an ``.npz`` file (images N×H×W×C uint8), tensors as torch has them.
    """
    if isinstance(value, DataSet):
        return value
    if not (isinstance(value, tuple | list) and len(value) == 4):
        raise TstarError(
            f"{name} must give x_train, y_train, x_test and y_test, or a tstar.lab.data.DataSet, "
            f"got {type(value).__name__}."
        )
    with own.explained(name):
        return _made(name, value[0], np.asarray(value[1]), (value[2], np.asarray(value[3])))


def _made(
    name: str,
    x: Any,
    y: np.ndarray,
    test: tuple[Any, np.ndarray] | None,
    names: np.ndarray | None = None,
    size: int | None = None,
) -> DataSet:
    """The arrays as a data set; without a test part a fifth is drawn."""
    x_train, domain = samples(x, f"x_train of {name}", size)
    y_train, y_test, classes = labels(y, y if test is None else test[1], names, name)
    if test is None:
        return DataSet(name, domain, *divided(x_train, y_train), classes)
    x_test, _ = samples(test[0], f"x_test of {name}", size)
    return DataSet(name, domain, x_train, y_train, x_test, y_test, classes)


def samples(x: Any, what: str, size: int | None = None) -> tuple[Tensor, Domain]:
    """The samples as a tensor of their domain's dtype and order of dimensions; images at a size.

    A tensor has that order already.
    """
    if isinstance(x, Tensor) and x.ndim in BY_DIMENSIONS:
        x = x.detach().cpu().contiguous()
        return (x if x.dtype == torch.uint8 and x.ndim == 4 else x.float()), BY_DIMENSIONS[x.ndim]
    x = np.asarray(x)
    if x.dtype == np.uint8 and x.ndim in (3, 4):
        x = x[..., None] if x.ndim == 3 else x
        if x.shape[-1] not in (1, 3, 4) and x.shape[1] in (1, 3, 4):
            raise TstarError(
                f"Images must be N×H×W×C, but {what} is {x.shape}, which looks like N×C×H×W; "
                "use x.transpose(0, 2, 3, 1)."
            )
        images = torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
        return resized(images, size), "image"
    if x.ndim not in (2, 3) or x.dtype.kind not in "fiu":
        raise TstarError(
            f"{what} must be N×H×W×C uint8 (images, 0…255), N×C×L floats (signals) or N×D numbers "
            f"(vectors), but is {x.shape} of {x.dtype}."
        )
    return torch.from_numpy(x.astype(np.float32, copy=False)), BY_DIMENSIONS[x.ndim]


def labels(
    train: np.ndarray, test: np.ndarray, names: np.ndarray | None, what: str
) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Labels as int64 and the class names; strings are numbered in alphabetical order."""
    if train.ndim != 1 or test.ndim != 1:
        raise TstarError(
            f"y_train and y_test of {what} must have one label per sample, got shapes "
            f"{train.shape} and {test.shape}; one-hot labels need an argmax first."
        )
    if train.dtype.kind in "US":
        train, test = _text(train), _text(test)
        found, numbers = np.unique(train, return_inverse=True)
        strange = np.setdiff1d(test, found)
        if len(strange):
            raise TstarError(
                f"Test labels of {what} must occur in its training part, but {str(strange[0])!r} "
                "does not."
            )
        return _int64(numbers), _int64(np.searchsorted(found, test)), tuple(found.tolist())
    for y in (train, test):
        if y.dtype.kind not in "iuf" or not np.all(np.isfinite(y) & (y == np.round(y))):
            raise TstarError(
                f"Labels of {what} must be whole numbers or strings, but are of {y.dtype}."
            )
    if names is None:  # a DataSet refuses gaps
        names = np.arange(len(np.unique(train)))
    return _int64(train), _int64(test), tuple(_text(names).ravel().tolist())


def _text(names: np.ndarray) -> np.ndarray:
    """Names as text; NumPy reads bytes as ASCII alone."""
    if names.dtype.kind == "S":
        return np.char.decode(names, "utf-8", "backslashreplace")
    return names.astype(str)


def _int64(y: np.ndarray) -> Tensor:
    return torch.from_numpy(y.astype(np.int64))
