"""What reading gives: one row a sample, its class, and what was done on the way."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError

if TYPE_CHECKING:
    import torch

LARGEST = 1e100  # squares of larger numbers leave float64's range


@dataclass(frozen=True)
class Matrix:
    """N samples of D numbers, with classes coded 0 … K−1 in the order of their first sample.

    ``scale`` maps a difference of values to the unit that box volumes are measured in (1/255 for
    8-bit pixels). ``on_device`` is the same matrix where it came on a GPU.
    """

    values: NDArray[np.generic]
    codes: NDArray[np.int64]
    classes: tuple[Hashable, ...]
    scale: float = 1.0
    notes: tuple[str, ...] = ()
    on_device: torch.Tensor | None = None


def encode(labels: Iterable[Any]) -> tuple[NDArray[np.int64], tuple[Hashable, ...]]:
    """Codes by first appearance, and the classes in that order: names play no part in it."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "biuU":
        return _encode_array(labels)
    seen: dict[Hashable, int] = {}
    codes = []
    for position, label in enumerate(labels):
        name = plain(label, position)
        codes.append(seen.setdefault(name, len(seen)))
    return np.array(codes, dtype=np.int64), tuple(seen)


def _encode_array(labels: NDArray[Any]) -> tuple[NDArray[np.int64], tuple[Hashable, ...]]:
    """As :func:`encode` for kinds of arrays whose every value is a good label, without a loop."""
    names, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[codes].astype(np.int64), tuple(names[order].tolist())


def plain(label: Any, position: int) -> Hashable:
    """A label as a hashable Python value: 0-d arrays and tensors are unpacked."""
    if hasattr(label, "item") and getattr(label, "ndim", 0) == 0:
        label = label.item()
    if label is None or (isinstance(label, float) and math.isnan(label)):
        raise TstarError(
            f"Every sample must have a label, but sample {position} has {label!r}; leave it out."
        )
    if not isinstance(label, Hashable) or hasattr(label, "shape"):
        raise TstarError(
            f"A label must be a single hashable value (a number, a string), but sample {position} "
            f"has one of type {type(label).__name__}; one-hot labels need an argmax first."
        )
    return label


def named(classes: tuple[Hashable, ...], names: Sequence[Any] | None) -> tuple[Hashable, ...]:
    """Integer classes by the names that a data set lists for them, where it lists enough."""
    if names is None or len(set(map(str, names))) < len(names):
        return classes
    numbers = [c for c in classes if isinstance(c, int) and 0 <= c < len(names)]
    return tuple(str(names[c]) for c in numbers) if len(numbers) == len(classes) else classes


def check_finite(rows: NDArray[np.generic], first: int = 0) -> None:
    """NaN, infinity and numbers whose squares overflow are errors, with the sample's position."""
    if rows.dtype.kind != "f":
        return
    bad = ~np.isfinite(rows)
    if rows.dtype == np.float64:
        bad |= np.greater(np.abs(rows), LARGEST)
    if bad.any():
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        value = rows[row][bad[row]][0]
        raise TstarError(
            f"Every value must be a finite number (below 1e100), but sample {first + row} has "
            f"{value!r}; remove or repair such samples."
        )
