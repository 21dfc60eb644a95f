"""Samples that come one after the other: Datasets, loaders, lists of pairs, in any process."""

from __future__ import annotations

import os
import pickle
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tstar.data.arrays import as_array
from tstar.errors import TstarError

T = TypeVar("T")
Pairs = Iterator[tuple[Any, Any]]
_INPUTS = (
    "image", "img", "images", "pixel_values", "input", "inputs", "x", "data", "features", "input_ids",
)  # fmt: skip
_LABELS = ("label", "labels", "target", "targets", "y", "class", "fine_label")
# One fork at a time: libraries that watch forks refuse a second one beside the first.
_forking = threading.Lock()
_CHUNK = 64  # samples that come from another process at a time


def is_loader(data: Any) -> bool:
    from torch.utils.data import DataLoader

    return isinstance(data, DataLoader)


def batch_count(data: Any) -> int | None:
    """How many batches a DataLoader gives in an epoch; ``None`` of other data, and where it is not known."""
    if not is_loader(data):
        return None
    try:
        count = len(data)
    except (TypeError, NotImplementedError):  # an endless stream, or a sampler that does not say
        return None
    if count < 1:
        raise TstarError(
            "A DataLoader must give at least one batch per epoch, got none; with drop_last=True its data set must hold "
            "a whole batch."
        )
    return count


def items(data: Any, column: str | None, positions: Sequence[int] | None) -> Pairs:
    """(sample, label) of a Dataset's items: pairs, or dictionaries with an image and a label."""
    for position, item in enumerate(each(data, positions)):
        yield pair(item, column, f"item {position}")


def batches(loader: Any, column: str | None, positions: Sequence[int] | None) -> Pairs:
    """(sample, label) of a loader's samples, batch by batch, without the loader's own randomness."""
    for position, batch in enumerate(_collated(loader, positions)):
        samples, labels = pair(batch, column, f"batch {position}")
        if not hasattr(samples, "__len__") or not hasattr(labels, "__len__"):
            raise TstarError(
                f"A batch must hold several samples and labels, got {type(samples).__name__} and "
                f"{type(labels).__name__}."
            )
        if len(samples) != len(labels):
            raise TstarError(
                f"A batch must have as many labels as samples, got {len(labels)} and {len(samples)}."
            )
        yield from zip(samples, labels, strict=True)


def each(data: Any, positions: Sequence[int] | None = None) -> Iterator[Any]:
    """The items of a map-style data set by index (its ``__iter__`` may never end), else by iteration."""
    position = -1
    try:
        if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
            for position in range(len(data)) if positions is None else positions:
                yield data[int(position)]
        else:
            for position, item in enumerate(data):  # noqa: B007 (named in the error)
                yield item
    except TstarError:
        raise
    except Exception as error:  # the user's code
        raise TstarError(
            f"The data could not be read at or after item {max(position, 0)}: "
            f"{type(error).__name__}: {error}"
        ) from error


def pair(item: Any, column: str | None, where: str) -> tuple[Any, Any]:
    """The sample and the label of one item or batch."""
    if isinstance(item, Mapping):
        return item[_column(item, _INPUTS, "samples", None)], item[
            _column(item, _LABELS, "labels", column)
        ]
    if isinstance(item, tuple | list) and len(item) >= 2:
        return item[0], item[1]
    raise TstarError(
        f"Each item of the data must be a (sample, label) pair or a dictionary with both, but {where} "
        f"is {type(item).__name__}; pass labels=… if they are kept apart."
    )


def _column(item: Mapping[str, Any], known: tuple[str, ...], what: str, wanted: str | None) -> str:
    if wanted is not None:
        if wanted not in item:
            raise TstarError(f"There is no column {wanted!r} among {', '.join(map(str, item))}.")
        return wanted
    for name in known:
        if name in item:
            return name
    raise TstarError(
        f"The {what} must be in a column named {', '.join(known)}, got {', '.join(map(str, item))}; "
        "rename the column" + (", or pass labels='NAME'." if what == "labels" else ".")
    )


def _collated(loader: Any, positions: Sequence[int] | None) -> Iterator[Any]:
    """The batches of a loader's data set: in its order, or as a sampler of the user's chooses."""
    import torch
    from torch.utils.data import DataLoader

    options: dict[str, Any] = {
        "collate_fn": loader.collate_fn,
        "generator": torch.Generator().manual_seed(0),  # else it draws on the process-wide one
    }
    if positions is not None:
        options |= {"sampler": positions, "batch_size": loader.batch_size or _CHUNK}
    elif usual_order(loader):
        options["batch_size"] = loader.batch_size
    else:
        options["batch_sampler"] = loader.batch_sampler
    return each(iter(DataLoader(loader.dataset, **options)))


def usual_order(loader: Any) -> bool:
    """Whether the loader visits every sample of its data set once."""
    from torch.utils.data import IterableDataset, RandomSampler, SequentialSampler

    if isinstance(loader.dataset, IterableDataset) or loader.batch_sampler is None:
        return True
    kind = type(loader.sampler)
    once = kind is SequentialSampler or (
        kind is RandomSampler and not loader.sampler.replacement and loader.batch_size is not None
    )
    return once and loader.batch_size is not None


def listed_labels(data: Any) -> Any:
    """The labels of all samples, where a data set lists them: torchvision's ``targets``, the second of two tensors."""
    from torch.utils.data import TensorDataset

    pair = type(data) is TensorDataset and len(data.tensors) == 2
    return data.tensors[1] if pair else getattr(data, "targets", None)


def known_labels(data: Any, column: str | None) -> NDArray[Any] | None:
    """Labels that can be had without running anybody's code: all that are listed, or the first sample's; else ``None``."""
    from torch.utils.data import default_collate

    loads = is_loader(data)
    if loads and data.collate_fn is not default_collate:  # which may change them
        return None
    held = data.dataset if loads else data
    if hasattr(listed := listed_labels(held), "dtype"):
        return as_array(listed, "labels")
    if runs_foreign_code(held) or not hasattr(held, "__getitem__") or not len(held):
        return None
    try:
        item = next(each(held, [0]))
        if isinstance(item, tuple | list) and len(item) != 2:  # which one is the label is not known
            return None
        label = pair(item, column, "item 0")[1]
    except TstarError:  # said when they are read
        return None
    array = np.asarray(label) if isinstance(label, float) else as_array(label, "A label")
    return None if array is None else array[None]


def runs_foreign_code(data: Any) -> bool:
    """Whether reading runs code that may draw on the process-wide generators."""
    from torch.utils.data import ConcatDataset, Subset, TensorDataset, default_collate

    if is_loader(data):
        own = data.collate_fn is not default_collate or not usual_order(data)
        return own or runs_foreign_code(data.dataset)
    if type(data) is Subset:
        return runs_foreign_code(data.dataset)
    if type(data) is ConcatDataset:
        return any(runs_foreign_code(part) for part in data.datasets)
    if type(data).__module__.partition(".")[0] == "datasets":  # of Hugging Face
        return getattr(data, "_format_type", None) == "custom" or not hasattr(data, "__len__")
    return type(data) not in (list, tuple, range, TensorDataset)


def elsewhere(make: Callable[[], Iterable[T]], seed: int) -> Iterator[T]:
    """What ``make()`` yields, from a forked process whose generators are seeded; ours stay untouched.

    Python's, NumPy's and torch's process-wide generators belong to the caller and to all its threads.
    Where a process cannot be forked safely (Windows, macOS), ``make()`` runs here, unseeded.
    """
    if not hasattr(os, "fork") or sys.platform == "darwin":
        yield from make()
        return
    global _forking
    receiving, sending = os.pipe()
    with _forking:
        child = os.fork()
    if child == 0:
        _forking = threading.Lock()  # the parent's is held here, by nobody
        status = 1
        try:
            os.close(receiving)
            with os.fdopen(sending, "wb") as out:
                _serve(make, seed, out)
            status = 0
        finally:
            os._exit(status)
    os.close(sending)
    try:
        with os.fdopen(receiving, "rb") as stream:
            while True:
                try:
                    kind, value = pickle.load(stream)
                except EOFError:
                    raise TstarError(
                        "The process that reads the data ended before it was done; it may have run out of memory."
                    ) from None
                if kind == "error":
                    raise TstarError(value)
                yield from value
                if kind == "end":
                    return
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _serve(make: Callable[[], Iterable[Any]], seed: int, out: Any) -> None:
    import torch

    torch.set_num_threads(1)  # OpenMP's threads did not survive the fork
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 (of this process alone)
    torch.manual_seed(seed)
    chunk: list[Any] = []
    try:
        for value in make():
            chunk.append(value)
            if len(chunk) == _CHUNK:
                pickle.dump(("some", chunk), out, pickle.HIGHEST_PROTOCOL)
                chunk = []
        pickle.dump(("end", chunk), out, pickle.HIGHEST_PROTOCOL)
    except BrokenPipeError:
        return
    except Exception as error:  # the user's code
        known = isinstance(error, TstarError)
        text = (
            str(error) if known else f"The data could not be read: {type(error).__name__}: {error}"
        )
        pickle.dump(("error", text), out)
