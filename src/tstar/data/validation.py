"""What must hold of a data set's arrays; each failure says what was got and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from tstar.errors import TstarError, unknown

if TYPE_CHECKING:
    from tstar.data.dataset import DataSet

Domain = Literal["image", "signal", "text", "tokens", "vector"]
# Dimensions and dtype of the samples of each domain.
DOMAINS: dict[str, tuple[str, int, torch.dtype]] = {
    "image": ("N×C×H×W", 4, torch.uint8),
    "signal": ("N×C×L", 3, torch.float32),
    "text": ("N×D", 2, torch.float32),
    "tokens": ("N×L", 2, torch.int64),
    "vector": ("N×D", 2, torch.float32),
}
# What samples of so many dimensions are, if they do not say.
BY_DIMENSIONS: dict[int, Domain] = {2: "vector", 3: "signal", 4: "image"}


def check(data: DataSet) -> None:
    """Raise :class:`TstarError` unless the arrays agree with each other and with their domain."""
    if data.domain not in DOMAINS:
        raise unknown("domain", data.domain, DOMAINS)
    for part in ("train", "test"):
        _check_samples(data, part)
    if data.x_train.shape[1:] != data.x_test.shape[1:]:
        raise TstarError(
            f"The samples of {data.name}'s two parts must have one shape, but got "
            f"{tuple(data.x_train.shape[1:])} for training and {tuple(data.x_test.shape[1:])} for test"
            + ("; pass size= to bring them to one." if data.domain == "image" else ".")
        )
    _check_texts(data)
    _check_labels(data)


def _check_samples(data: DataSet, part: str) -> None:
    x: Tensor = getattr(data, f"x_{part}")
    y: Tensor = getattr(data, f"y_{part}")
    shape, dimensions, dtype = DOMAINS[data.domain]
    if x.ndim != dimensions or x.dtype != dtype:
        raise TstarError(
            f"x_{part} of {data.name} ({data.domain}) must be {shape} of {dtype}, but got "
            f"{tuple(x.shape)} of {x.dtype}."
        )
    if y.ndim != 1 or y.dtype != torch.int64:
        raise TstarError(
            f"y_{part} of {data.name} must be one int64 label per sample, but got "
            f"{tuple(y.shape)} of {y.dtype}."
        )
    if len(x) != len(y):
        raise TstarError(
            f"x_{part} and y_{part} of {data.name} must have the same length, but got {len(x)} samples "
            f"and {len(y)} labels."
        )
    if x.numel() == 0:
        raise TstarError(
            f"x_{part} of {data.name} must not be empty, but has shape {tuple(x.shape)}."
        )
    if x.is_floating_point() and not bool(torch.isfinite(x).all()):
        bad = int((~torch.isfinite(x)).flatten(1).any(1).sum())
        raise TstarError(
            f"x_{part} of {data.name} must be finite, but {bad} of {len(x)} samples hold NaN or "
            "infinity; remove or repair them."
        )


def _check_texts(data: DataSet) -> None:
    if data.texts is None:
        return
    counts = [len(part) for part in data.texts]
    if counts != [len(data.x_train), len(data.x_test)]:
        raise TstarError(
            f"texts of {data.name} must be one string per sample of the two parts, but got {counts} "
            f"texts for {[len(data.x_train), len(data.x_test)]} samples."
        )


def _check_labels(data: DataSet) -> None:
    classes = len(data.classes)
    present = torch.unique(data.y_train)
    if classes < 2 or len(present) < 2:
        raise TstarError(
            f"{data.name} must have at least two classes, but its training part has {len(present)}."
        )
    if len(set(data.classes)) != classes:
        twice = sorted({name for name in data.classes if data.classes.count(name) > 1})
        raise TstarError(f"Class names of {data.name} must differ, but {twice[:5]} occur twice.")
    lowest, highest = int(present[0]), int(present[-1])
    if lowest < 0 or highest >= classes or len(present) != classes:
        missing = sorted(set(range(classes)) - set(present.tolist()))
        raise TstarError(
            f"Labels of {data.name} must be 0…{classes - 1} without gaps, but the training part has "
            f"{len(present)} labels from {lowest} to {highest}"
            + (f" and none of class {_some(missing)}" if missing else "")
            + "; renumber them, e.g. with numpy.unique(y, return_inverse=True)."
        )
    strange = sorted(set(torch.unique(data.y_test).tolist()) - set(range(classes)))
    if strange:
        raise TstarError(
            f"Test labels of {data.name} must occur in its training part, but label "
            f"{_some(strange)} does not; remove these samples."
        )


def _some(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    return shown if len(numbers) <= 5 else f"{shown}, … ({len(numbers)} in all)"
