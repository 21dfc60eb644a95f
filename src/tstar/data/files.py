"""Data sets of your own: ``.npz`` files and folders of images."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tstar.data.dataset import DataSet
from tstar.data.resize import area_resize
from tstar.data.validation import Domain
from tstar.errors import TstarError

_ARRAYS = ("x_train", "y_train", "x_test", "y_test")


def read_npz(path: Path, name: str, size: int | None) -> DataSet:
    """A ``.npz`` file with ``x_train, y_train, x_test, y_test`` and, if you like, ``classes``.

    N×H×W×C uint8 (or N×H×W, grey) are images, N×C×L floats signals, N×D numbers vectors. Labels are
    0…K−1, or strings. Pickled arrays are refused.
    """
    arrays = _arrays(path)
    x_train, domain = samples(arrays["x_train"], f"x_train of {path.name}")
    x_test, test_domain = samples(arrays["x_test"], f"x_test of {path.name}")
    if domain != test_domain:
        raise TstarError(
            f"x_train and x_test of {path.name} must be of one kind, but got {domain} and {test_domain}."
        )
    if domain == "vector" and str(arrays.get("domain")) == "text":
        domain = "text"
    y_train, y_test, classes = labels(
        arrays["y_train"], arrays["y_test"], arrays.get("classes"), path.name
    )
    if domain == "image" and size is not None:
        x_train, x_test = area_resize(x_train, size), area_resize(x_test, size)
    return DataSet(name, domain, x_train, y_train, x_test, y_test, classes)


def write_npz(data: DataSet, path: Path) -> None:
    """Write ``data`` as a ``.npz`` file that :func:`read_npz` gives back with the same checksum.

    A data set of many image files is then read at once, and needs no decoding in each process.
    """
    images = data.domain == "image"
    arrays = {key: getattr(data, key).numpy() for key in _ARRAYS}
    for key in ("x_train", "x_test") if images else ():
        arrays[key] = arrays[key].transpose(0, 2, 3, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        path, classes=np.array(data.classes), domain=np.array(data.domain), **arrays
    )


def _arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        # Opened here: NumPy leaves a file that it cannot read open.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise TstarError(f"{path.name} must be an .npz archive, but is a single array.")
            missing = [key for key in _ARRAYS if key not in file.files]
            if missing:
                raise TstarError(
                    f"{path.name} must hold {', '.join(_ARRAYS)}, but {', '.join(missing)} is missing; "
                    f"it holds {', '.join(file.files) or 'nothing'}."
                )
            keys = [*_ARRAYS, *(key for key in ("classes", "domain") if key in file.files)]
            return {key: file[key] for key in keys}
    except TstarError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise TstarError(
            f"{path} must be an .npz file of plain arrays, but reading it failed: {error}"
        ) from error


def samples(x: np.ndarray, what: str) -> tuple[Tensor, Domain]:
    """The samples as a tensor of their domain's dtype and order of dimensions."""
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
    if train.dtype.kind in "US":
        if names is not None:
            raise TstarError(f"{what} must not hold both string labels and classes; drop classes.")
        found, numbers = np.unique(train, return_inverse=True)
        strange = sorted(set(test.astype(str).tolist()) - set(found.astype(str).tolist()))
        if strange:
            raise TstarError(
                f"Test labels of {what} must occur in its training part, but {strange[0]!r} does not."
            )
        places = np.searchsorted(found, test.astype(found.dtype))
        return _int64(numbers), _int64(places), tuple(found.astype(str).tolist())
    for part, y in (("y_train", train), ("y_test", test)):
        whole = y.dtype.kind in "iu" or (y.dtype.kind == "f" and bool(np.all(y == np.round(y))))
        if not whole:
            raise TstarError(
                f"{part} of {what} must hold whole numbers or strings, but is {y.dtype}."
            )
    if names is None:
        highest = int(train.max()) if train.size else -1
        return _int64(train), _int64(test), tuple(map(str, range(highest + 1)))
    return _int64(train), _int64(test), tuple(np.asarray(names).astype(str).ravel().tolist())


def _int64(y: np.ndarray) -> Tensor:
    return torch.from_numpy(y.astype(np.int64))
