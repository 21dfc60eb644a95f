"""Whatever a user has as data, as the arrays that the training loop takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tstar.data.arrays import as_array, looks_like_tokens, numbers, plain, refuse_real
from tstar.data.dataset import DataSet
from tstar.data.door import Source, open_data
from tstar.data.images import streamed
from tstar.data.loading import load
from tstar.data.pixels import channels_first, from_pil, is_pil
from tstar.data.splits import test_rows
from tstar.data.streams import elsewhere
from tstar.data.validation import BY_DIMENSIONS, Domain
from tstar.errors import TstarError

_MOST = 20_000  # samples read from a data set: enough for a short look


@dataclass(frozen=True, eq=False)
class Task:
    """The fields of a :class:`tstar.data.DataSet`, for samples that are already preprocessed.

    ``raw`` says that the samples are stored bytes or signals, which augmentation applies to.
    """

    name: str
    domain: Domain
    x_train: Tensor
    y_train: Tensor
    x_test: Tensor
    y_test: Tensor
    num_classes: int
    raw: bool


def as_task(data: Any) -> Task:
    """Data in any form of :func:`tstar.data.door.open_data`, split into parts where they have none."""
    if isinstance(data, str | PathLike):
        data = load(data)
    if isinstance(data, DataSet):
        if streamed(data.x_train):
            data = data.subset(*(min(_MOST, len(y)) for y in (data.y_train, data.y_test)))
            data = replace(data, x_train=data.x_train[:], x_test=data.x_test[:])
        x = (data.x_train, data.y_train, data.x_test, data.y_test)
        return Task(data.name, data.domain, *x, data.num_classes, raw=True)
    source = open_data(data)
    x_train, labels = _read(source)
    if source.test is None:
        classes, y = np.unique(labels, return_inverse=True)
        rest, drawn = test_rows(torch.from_numpy(y))
        x_train, x_test = x_train[rest], x_train[drawn]
        y_train, y_test = y[rest], y[drawn]
    else:
        x_test, other = _read(source.test)
        classes, y = np.unique(np.concatenate([labels, other]), return_inverse=True)
        y_train, y_test = y[: len(labels)], y[len(labels) :]
    if len(classes) < 2:
        raise TstarError(f"At least two classes are needed, got {len(classes)}.")
    domain: Domain = "vector"
    raw = x_train.dtype == torch.uint8 and x_train.ndim == 4
    if looks_like_tokens(x_train.shape[1:], x_train[:1].numpy().dtype):
        domain = "tokens"
        x_train, x_test = x_train.long(), x_test.long()
    else:
        domain = BY_DIMENSIONS[x_train.ndim]
        if not raw:
            x_train, x_test = x_train.float(), x_test.float()
    y_both = (torch.from_numpy(np.asarray(y, dtype=np.int64)) for y in (y_train, y_test))
    y_first, y_second = y_both
    return Task(source.name, domain, x_train, y_first, x_test, y_second, len(classes), raw)


def _read(source: Source) -> tuple[Tensor, np.ndarray]:
    """Samples N×…, as they come, and their labels; of many samples a part."""
    some = source.some(_MOST, seed=0)
    if source.x is not None:
        x, y = source.x, np.asarray(source.y)
        if some is not None:
            x, y = x[some], y[some]
        if x.ndim == 4:
            x = channels_first(x, source.tensor is not None)
    else:
        assert source.pairs is not None
        pairs = source.pairs

        def samples() -> Any:
            read = pairs(None if some is None else some.tolist())
            for position, (sample, label) in enumerate(read):
                yield _sample(sample), plain(label, position)

        read = elsewhere(samples, 0) if source.foreign else samples()
        found = [*islice(read, _MOST)]  # a stream may never end
        shapes = {sample.shape for sample, _ in found}
        if len(shapes) != 1:
            raise TstarError(
                f"All samples must have one shape, got {len(shapes)} of them; add a resizing transform."
            )
        x, y = np.stack([sample for sample, _ in found]), np.array([label for _, label in found])
    if x.ndim not in BY_DIMENSIONS:
        raise TstarError(f"Samples must be N×C×H×W, N×C×L or N×D, got shape {x.shape}.")
    if y.ndim != 1 or y.dtype.kind == "O":
        raise TstarError(f"Labels must be one number or text per sample, got {y.dtype} {y.shape}.")
    refuse_real(y)
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        raise TstarError("Samples must be finite, but some hold NaN or infinity; remove them.")
    return torch.from_numpy(np.ascontiguousarray(x)), y


def _sample(sample: Any) -> np.ndarray:
    if is_pil(sample):
        return np.moveaxis(from_pil(sample), -1, 0)
    array = as_array(sample, "A sample")
    if array is None:
        raise TstarError(
            f"A sample must be an image, an array or a tensor, got {type(sample).__name__}; add a "
            "transform such as torchvision.transforms.ToTensor()."
        )
    return numbers(array, "A sample")
