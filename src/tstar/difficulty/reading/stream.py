"""Samples that come one after the other, or in batches: Datasets, loaders, folders."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.progress import progress
from tstar.difficulty.reading.arrays import features, is_image, is_tensor, to_numpy
from tstar.difficulty.reading.embedding import BATCH, Embed, embedder
from tstar.difficulty.reading.images import from_pil, image_rows, is_pil, round_unit_images
from tstar.difficulty.reading.rows import Rows
from tstar.errors import TstarError

_INPUTS = ("image", "img", "images", "pixel_values", "input", "inputs", "x", "data", "features")
_LABELS = ("label", "labels", "target", "targets", "y", "class", "fine_label")


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Random transforms and shuffling loaders get randomness from ``seed``; the caller's is put back."""
    import torch

    states = random.getstate(), np.random.get_state(), torch.default_generator.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch.default_generator.set_state(states[2])


def read_stream(
    pairs: Iterable[tuple[Any, Any]], expected: int | None, size: int | None, embed: Embed | None
) -> tuple[NDArray[np.generic], list[Any], bool]:
    """Rows, labels, and whether the rows are images; each sample is seen once and then let go."""
    rows, labels = Rows(expected), []
    images = False
    with progress("reading", expected) as tick:

        def noted() -> Iterator[Any]:
            for sample, label in pairs:
                labels.append(label)
                yield sample
                tick(1)

        if embed is None:
            for sample in noted():
                row, image = sample_row(sample, size)
                images = images or image
                rows.add(row)
        else:
            with embedder(embed) as run:
                for batch in _runs(noted()):
                    for row in run(batch):
                        rows.add(row)
    return rows.matrix(), labels, images


def sample_row(sample: Any, size: int | None) -> tuple[NDArray[np.generic], bool]:
    """One sample as a row, and whether it is an image."""
    if is_pil(sample):
        return image_rows(from_pil(sample)[None], size, False)[0], True
    array = to_numpy(sample)[None]
    if array.dtype.kind not in "fiub":
        raise TstarError(
            f"A sample must be an image, an array or a tensor, got {type(sample).__name__}."
        )
    if not is_image(array):
        return features(array.reshape(1, -1))[0], False
    rows = image_rows(array, size, is_tensor(sample))
    return (rows[0] if rows.dtype == np.uint8 else round_unit_images(rows)[0]), True


def items(data: Iterable[Any], label_column: str | None) -> Iterator[tuple[Any, Any]]:
    """(sample, label) of a Dataset's items: pairs, or dictionaries with an image and a label."""
    for position, item in enumerate(each(data)):
        yield _pair(item, position, label_column)


def batches(data: Iterable[Any], label_column: str | None) -> Iterator[tuple[Any, Any]]:
    """(sample, label) of a loader's batches, one by one."""
    for position, batch in enumerate(data):
        samples, labels = _pair(batch, position, label_column)
        if len(samples) != len(labels):
            raise TstarError(
                f"A batch must have as many labels as samples, got {len(labels)} and {len(samples)}."
            )
        yield from zip(samples, labels, strict=True)


def each(data: Any) -> Iterator[Any]:
    """The items of a map-style data set by index (its ``__iter__`` may never end), else by iteration."""
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        yield from (data[i] for i in range(len(data)))
    else:
        yield from data


def _pair(item: Any, position: int, label_column: str | None) -> tuple[Any, Any]:
    if isinstance(item, Mapping):
        return item[_column(item, _INPUTS, "samples", None)], item[
            _column(item, _LABELS, "labels", label_column)
        ]
    if isinstance(item, tuple | list) and len(item) >= 2:
        return item[0], item[1]
    raise TstarError(
        f"Each item of the data must be a (sample, label) pair or a dictionary with both, but item "
        f"{position} is {type(item).__name__}; pass labels=… if they are kept apart."
    )


def _column(item: Mapping[str, Any], known: tuple[str, ...], what: str, wanted: str | None) -> str:
    if wanted is not None:
        if wanted not in item:
            raise TstarError(f"The column {wanted!r} must exist, got {', '.join(map(str, item))}.")
        return wanted
    for name in known:
        if name in item:
            return name
    raise TstarError(
        f"The {what} must be in a column named {', '.join(known)}, got {', '.join(map(str, item))}; "
        "rename the column" + (", or pass labels='NAME'." if what == "labels" else ".")
    )


def _runs(samples: Iterable[Any]) -> Iterator[list[Any]]:
    """Consecutive samples of one shape, at most ``BATCH`` at a time."""
    batch: list[Any] = []
    shape: Any = None
    for sample in samples:
        here = (sample.size, sample.mode) if is_pil(sample) else tuple(np.shape(sample))
        if batch and (here != shape or len(batch) == BATCH):
            yield batch
            batch = []
        batch.append(sample)
        shape = here
    if batch:
        yield batch
