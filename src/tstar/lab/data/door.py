"""The one door: whatever a user has becomes samples for the core, or a task to train on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tstar import samples as core
from tstar.difficulty import channels_first, from_pil
from tstar.errors import TstarError, guarded
from tstar.lab import own
from tstar.lab.data.dataset import BY_DIMENSIONS, DataSet, divided
from tstar.lab.data.images import Folder, decode, find_images
from tstar.lab.data.loading import load, locate

_MOST = 20_000  # samples read from a data set: enough for a short look
_TRAIN = ("train", "training")
_TEST = ("test", "testing", "validation", "valid", "val")


def open_data(
    data: Any,
    labels: Any = None,
    *,
    size: int | None = None,
    root: str | os.PathLike[str] | None = None,
) -> core.Samples:
    """Whatever holds labeled samples, opened for ``tstar.csg`` and ``tstar.recommend``.

    Args:
        data: a name of :func:`tstar.lab.data.names`, an image folder, an ``.npz`` file, a CSV file
            of text; a table (pandas, polars; one row per sample) or a dictionary of columns; a
            Hugging Face data set; a dictionary of parts such as ``DatasetDict``, whose ``"train"``
            is read; or anything that the core takes itself.
        labels: one value per sample, or the name of the label column; not for paths.
        size: for images that are read by name.
        root: the folder that names and paths are looked up in; ``$TSTAR_DATA`` by default.

    >>> open_data("digits").samples
    1438
    """
    if isinstance(data, str | os.PathLike):
        if labels is not None:
            raise TstarError("A path brings its own labels, but got others; leave labels out.")
        return _open_path(data, size, root)
    train, _ = parts_of(data)
    if train is not data:
        return open_data(train, labels)
    with guarded("Your data could not be opened"):
        if isinstance(data, Mapping):
            return core.open_samples(*core.pair(data, labels if isinstance(labels, str) else None))
        if isinstance(labels, str) and hasattr(data, "columns") and labels in data.columns:
            rest = [column for column in data.columns if column != labels]
            return core.open_samples(data[rest], data[labels])
    return core.open_samples(data, labels)


def parts_of(data: Any) -> tuple[Any, Any]:
    """The training and the test part of a dictionary of parts; other data are one part."""
    if not isinstance(data, Mapping) or not any(key in data for key in _TRAIN):
        return data, None
    train, test = ([data[key] for key in keys if key in data] for keys in (_TRAIN, _TEST))
    return train[0], test[0] if test else None


def _open_path(
    path: str | os.PathLike[str], size: int | None, root: str | os.PathLike[str] | None
) -> core.Samples:
    found = locate(path, root)
    if found is not None and found.is_dir():
        return _open_folder(find_images(found))
    # Names alone, and functions that take one, are asked for a size.
    name = os.fspath(path)
    sized = found is None and (not own.is_reference(name) or own.takes(own.load(name), "size"))
    return core.open_samples(load(path, root=root, size=size if sized else None))


def _open_folder(folder: Folder) -> core.Samples:
    """The training part of a folder of images, decoded one by one."""
    N, y = len(folder.train), [label for _, label in folder.train]

    def pairs(positions: Sequence[int] | None) -> Iterator[tuple[Any, Any]]:
        for i in range(N) if positions is None else positions:
            yield np.moveaxis(decode(folder.train[i][0]), 0, -1), y[i]

    return core.Samples(folder.name, None, y, pairs, N, names=folder.classes)


@dataclass(frozen=True, eq=False)
class Task(DataSet):
    """Samples of any kind, images that are already preprocessed among them.

    ``raw`` says that the samples are stored bytes or signals, which augmentation applies to.
    """

    raw: bool = True

    def __post_init__(self) -> None:
        """Nothing is checked: the samples may be of any kind."""


def as_task(data: Any) -> Task:
    """Data in any form of :func:`tstar.lab.data.open_data`, split into parts if they have none."""
    if isinstance(data, str | os.PathLike):
        data = load(data)
    if isinstance(data, DataSet):
        return Task(*(getattr(data, field.name) for field in fields(DataSet)))
    train, test = parts_of(data)
    with guarded("The data could not be read"):
        name, x_train, labels = _read(train)
        x_test, other = (None, []) if test is None else _read(test)[1:]
        classes, codes = np.unique(np.array([*labels, *other]), return_inverse=True)
    y = torch.from_numpy(codes.astype(np.int64))
    y_train, y_test = y[: len(labels)], y[len(labels) :]
    if x_test is None:
        x_train, y_train, x_test, y_test = divided(x_train, y)
    if len(classes) < 2:
        raise TstarError(f"At least two classes are needed, got {len(classes)}.")
    raw = x_train.dtype == torch.uint8 and x_train.ndim == 4
    domain = BY_DIMENSIONS[x_train.ndim]
    if core.looks_like_tokens(x_train.shape[1:], x_train[:1].numpy().dtype):
        domain, x_train, x_test = "tokens", x_train.long(), x_test.long()
    elif not raw:
        x_train, x_test = x_train.float(), x_test.float()
    names = tuple(map(str, classes))
    return Task(name, domain, x_train, y_train, x_test, y_test, names, raw=raw)


def _read(data: Any) -> tuple[str, Tensor, list[Any]]:
    """A name, samples N×… as they come, and their labels; at most 20,000."""
    source = open_data(data)
    some = None
    if source.indexed and source.samples is not None and source.samples > _MOST:
        drawn = np.random.default_rng((0, 0xD00A)).permutation(source.samples)
        some = np.sort(drawn[:_MOST])
    if source.x is not None:
        x = source.x if some is None else source.x[some]
        y = [core.plain(source.y[i], i) for i in (range(len(x)) if some is None else some)]
        if x.ndim == 4:
            x = channels_first(x, source.tensor)
    else:
        read = source.read(None if some is None else some.tolist())
        found = [
            (_sample(s), core.plain(label, i)) for i, (s, label) in enumerate(islice(read, _MOST))
        ]
        x, y = np.stack([sample for sample, _ in found]), [label for _, label in found]
    if x.ndim not in BY_DIMENSIONS:
        raise TstarError(f"Samples must be N×C×H×W, N×C×L or N×D, got shape {x.shape}.")
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        raise TstarError("Samples must be finite, but some hold NaN or infinity; remove them.")
    return source.name, torch.from_numpy(np.ascontiguousarray(x)), core.label_array(y)


def _sample(sample: Any) -> np.ndarray:
    if hasattr(sample, "getbands"):  # of PIL
        return np.moveaxis(from_pil(sample), -1, 0)
    array = core.as_array(sample, "A sample")
    if array is None:
        raise TstarError(
            f"A sample must be an image, an array or a tensor, got {type(sample).__name__}; add a "
            "transform such as torchvision.transforms.ToTensor()."
        )
    return core.numbers(array, "A sample")
