"""Whatever a user has as data, as the arrays that the training loop takes."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tstar.data import DataSet, load
from tstar.data.splits import TEST_FRACTION, TEST_SEED, stratified
from tstar.data.validation import Domain
from tstar.errors import TstarError

_MOST = 20_000  # samples read from a torch Dataset: enough for a short look
_DOMAINS: dict[int, Domain] = {2: "vector", 3: "signal", 4: "image"}


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
    """A data set, its name or path, a torch ``Dataset``, or a pair (samples, labels)."""
    if isinstance(data, str | PathLike):
        data = load(data)
    if isinstance(data, DataSet):
        x = (data.x_train, data.y_train, data.x_test, data.y_test)
        return Task(data.name, data.domain, *x, data.num_classes, raw=True)
    if isinstance(data, tuple | list) and len(data) == 2 and hasattr(data[0], "shape"):
        return _from_arrays(torch.as_tensor(np.asarray(data[0])), np.asarray(data[1]))
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return _from_dataset(data)
    raise TstarError(
        "data must be a tstar.data.DataSet, a name or path, a torch Dataset of (sample, label) pairs, or "
        f"a pair (samples, labels) of arrays, got {type(data).__name__}."
    )


def _from_dataset(data: Any) -> Task:
    """Read a torch ``Dataset``; of a large one an evenly spaced part."""
    count = len(data)
    rows = range(count) if count <= _MOST else np.linspace(0, count - 1, _MOST).astype(int).tolist()
    samples, labels = [], []
    for row in rows:
        pair = data[row]
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise TstarError(
                f"A torch Dataset must give (sample, label) pairs, got {type(pair).__name__}."
            )
        try:
            samples.append(torch.as_tensor(np.asarray(pair[0])))
            labels.append(int(pair[1]))
        except (TypeError, ValueError, RuntimeError) as error:
            raise TstarError(
                f"Sample {row} must be a tensor with an integer label, but: {error}; add a transform "
                "such as torchvision.transforms.ToTensor()."
            ) from error
    shapes = {tuple(sample.shape) for sample in samples}
    if len(shapes) != 1:
        raise TstarError(
            f"All samples must have one shape, got {len(shapes)} of them; add a resizing transform."
        )
    return _from_arrays(torch.stack(samples), np.asarray(labels))


def _from_arrays(x: Tensor, labels: np.ndarray) -> Task:
    if x.ndim not in _DOMAINS:
        raise TstarError(f"Samples must be N×C×H×W, N×C×L or N×D, got shape {tuple(x.shape)}.")
    if labels.shape != (len(x),):
        raise TstarError(f"One label a sample is needed, got {labels.shape} for {len(x)} samples.")
    raw = x.dtype == torch.uint8 and x.ndim == 4
    x = x if raw else x.float()
    if not bool(torch.isfinite(x.float()).all()):
        raise TstarError("Samples must be finite, but some hold NaN or infinity; remove them.")
    classes, numbers = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise TstarError(f"At least two classes are needed, got {len(classes)}.")
    y = torch.as_tensor(numbers.astype(np.int64))
    train, test = stratified(y, round(len(y) * TEST_FRACTION), TEST_SEED)
    return Task(
        "your data", _DOMAINS[x.ndim], x[train], y[train], x[test], y[test], len(classes), raw
    )
