"""Which kind of data it is, and the reader for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.reading import stream
from tstar.difficulty.reading.arrays import is_tensor, matrix_of, to_numpy
from tstar.difficulty.reading.embedding import Embed
from tstar.difficulty.reading.files import ImageFolder, load_npz, unreadable_error
from tstar.difficulty.reading.matrix import Matrix, check_finite, encode, named
from tstar.errors import TstarError


def read(
    data: Any,
    labels: Any = None,
    *,
    size: int | None = 32,
    embed: Embed | None = None,
    skip_unreadable: bool = False,
    seed: int = 0,
) -> Matrix:
    """Any supported data as a :class:`Matrix`; see :func:`tstar.csg` for the kinds."""
    if isinstance(data, str) and not Path(data).exists():
        from tstar.data import load

        data = load(data, size=size if embed is None else None)
    if isinstance(data, str | os.PathLike):
        data, labels, names, notes = _open(Path(data), labels)
    elif hasattr(data, "x_train") and hasattr(data, "y_train"):  # tstar.data: its training part
        if getattr(data, "domain", None) == "tokens" and embed is None:
            raise TstarError(
                f"Samples must be numbers whose distance means something, but {data.name} holds token ids; "
                "pass the data set before tokenise(), or embed= with a text encoder."
            )
        data, labels, names, notes = data.x_train, data.y_train, data.classes, ()
    else:
        names, notes = _class_names(data, labels), ()
    with stream.own_randomness(seed):
        if isinstance(data, np.ndarray) or is_tensor(data):
            return _from_array(data, labels, names, notes, size, embed)
        return _from_stream(data, labels, names, size, embed, skip_unreadable)


def _open(path: Path, labels: Any) -> tuple[Any, Any, Any, tuple[str, ...]]:
    if labels is not None and not isinstance(labels, str):
        raise TstarError(
            f"A path brings its own labels, got labels of type {type(labels).__name__}."
        )
    if path.is_dir():
        return ImageFolder(path), labels, None, ()
    if path.suffix == ".npz" and path.exists():
        return *load_npz(path), ()
    raise TstarError(
        f"data must be an image folder or an .npz file, got {os.fspath(path)!r}"
        + (", which does not exist." if not path.exists() else ".")
    )


def _from_array(
    data: Any,
    labels: Any,
    names: Any,
    notes: tuple[str, ...],
    size: int | None,
    embed: Embed | None,
) -> Matrix:
    if labels is None or isinstance(labels, str):
        raise TstarError("labels must be given with an array of data; pass csg(data, labels).")
    codes, classes = _label_array(labels)
    if len(codes) != len(data):
        raise TstarError(
            f"data and labels must have the same length, got {len(data)} samples and "
            f"{len(codes)} labels."
        )
    classes = named(classes, names)
    if embed is not None:
        values, _, images = stream.read_stream(((x, 0) for x in data), len(data), size, embed)
    else:
        array = to_numpy(data)
        values = matrix_of(array, size, is_tensor(data))
        images = array.ndim == 4
    check_finite(values)
    scale, extra = _unit(values, images)
    return Matrix(values, codes, classes, scale, notes + extra, _on_device(data, values))


def _from_stream(
    data: Any, labels: Any, names: Any, size: int | None, embed: Embed | None, skip: bool
) -> Matrix:
    column = labels if isinstance(labels, str) else None
    given = None if labels is None or column else list(labels)
    values, seen, images = stream.read_stream(
        _pairs(data, column, given), _length(data), size, embed
    )
    unreadable = data.unreadable if isinstance(data, ImageFolder) else []
    if unreadable and not skip:
        raise unreadable_error(unreadable)
    codes, classes = encode(seen)
    scale, notes = _unit(values, images)
    if unreadable:
        notes += (f"{len(unreadable)} unreadable files were skipped, the first {unreadable[0]}",)
    return Matrix(values, codes, named(classes, names), scale, notes)


def _pairs(data: Any, column: str | None, given: list[Any] | None) -> Iterator[tuple[Any, Any]]:
    """(sample, label) one by one, whatever the container."""
    from torch.utils.data import DataLoader

    if isinstance(data, ImageFolder):
        return iter(data)
    if not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        raise TstarError(
            "data must be an array, a tensor, a Dataset, a DataLoader, a Hugging Face data set or a "
            f"path, got {type(data).__name__}."
        )
    if given is not None:
        return zip(_samples(data, len(given)), given, strict=True)
    return (stream.batches if isinstance(data, DataLoader) else stream.items)(data, column)


def _samples(data: Any, labels: int) -> Iterator[Any]:
    """The samples of data whose labels are kept apart, which must be as many."""
    count = 0
    for item in stream.each(data):
        count += 1
        if count <= labels:
            yield item[0] if isinstance(item, tuple) else item
    if count != labels:
        raise TstarError(
            f"data and labels must have the same length, got {count} samples and {labels} labels."
        )


def _length(data: Any) -> int | None:
    """The number of samples, where it is known: of a loader, that of its data set."""
    try:
        return len(
            data.dataset if hasattr(data, "dataset") and hasattr(data, "batch_size") else data
        )
    except TypeError:
        return None


def _label_array(labels: Any) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
    if is_tensor(labels):
        labels = to_numpy(labels)
    if isinstance(labels, np.ndarray) and labels.ndim != 1:
        raise TstarError(
            f"labels must have one value a sample, got shape {labels.shape}; one-hot labels need "
            "an argmax first."
        )
    return encode(labels)


def _class_names(data: Any, labels: Any) -> Any:
    """The names of integer classes that a data set carries: torchvision's, or Hugging Face's."""
    column = labels if isinstance(labels, str) else "label"
    source = getattr(data, "dataset", data)
    features = getattr(source, "features", None)
    if isinstance(features, dict) and hasattr(features.get(column), "names"):
        return features[column].names
    names = getattr(source, "classes", None)
    return names if isinstance(names, list | tuple) else None


def _unit(values: NDArray[np.generic], images: bool) -> tuple[float, tuple[str, ...]]:
    """What one unit of a box's side is: [0, 1] for pixels; for features, the features' own."""
    if values.dtype == np.uint8:
        return 1 / 255, ()
    if not images or not len(values):
        return 1.0, ()
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        return 1.0, ()
    note = f"pixels from {low:.4g} to {high:.4g} were measured relative to that range"
    return 1 / (high - low), (note,)


def _on_device(data: Any, values: NDArray[np.generic]) -> Any:
    """The matrix on the GPU that the data came from, if 8-bit; floats are searched on the CPU."""
    if is_tensor(data) and data.device.type != "cpu" and values.dtype == np.uint8:
        import torch

        return torch.from_numpy(values).to(data.device)
    return None
