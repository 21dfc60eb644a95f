"""Labeled samples as a script has them, opened the same way for ``csg`` and ``recommend``.

Arrays with labels, a ``Dataset``, a ``DataLoader``, a list of pairs. Names, folders, files and
tables are opened by :func:`tstar.lab.data.open_data`, which gives the same :class:`Samples`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError, guarded, shown

Pairs = Iterator[tuple[Any, Any]]
MEMORY = "TSTAR_MEMORY_MB"
_INPUTS = (
    *("image", "img", "images", "pixel_values", "input", "inputs", "x", "data", "features"),
    "input_ids",
)
_LABELS = ("label", "labels", "target", "targets", "y", "class", "fine_label")


@dataclass(frozen=True, eq=False)
class Samples:
    """Labeled samples: whole arrays ``x`` and ``y``, or a stream of (sample, label) pairs."""

    name: str = "your data"
    x: NDArray[Any] | None = None  # (N, …); None for a stream
    y: Any = None  # the labels, as far as they are known without reading a sample
    pairs: Callable[[Sequence[int] | None], Pairs] | None = None  # at these positions; None: all
    samples: int | None = None  # how many there are, if that is known without reading them
    indexed: bool = True  # whether positions can be chosen
    names: Sequence[Any] | None = None  # of classes that are numbers
    tokens: bool = False  # ids, whose distances mean nothing
    tensor: bool = False  # images have their channels first

    def read(self, positions: Sequence[int] | None = None) -> Pairs:
        """The pairs, at these positions or all."""
        if self.pairs is not None:
            return self.pairs(positions)
        assert self.x is not None
        chosen = range(len(self.x)) if positions is None else positions
        return ((self.x[i], self.y[i]) for i in chosen)


@guarded("Your data could not be opened")
def open_samples(data: Any, labels: Any = None) -> Samples:
    """Recognize what ``data`` are; no sample is read yet.

    An array or tensor (N, …); a ``Dataset``, ``DataLoader`` or list of (sample, label) pairs or of
    dictionaries; a pair (samples, labels); the training part of a ``tstar.lab.data.DataSet``; or
    :class:`Samples`. ``labels`` are one value per sample, or the name of their column.
    """
    if isinstance(data, Samples):
        return data
    if isinstance(data, str | os.PathLike | Mapping):
        raise TstarError(
            "data must be arrays with labels, a Dataset or a DataLoader, got "
            f"{shown(data)}; names, files and tables are opened by tstar.lab.data.open_data(…)."
        )
    if getattr(data, "x_train", None) is not None and getattr(data, "y_train", None) is not None:
        return _from_dataset(data)
    arrays = isinstance(data, list) and all(getattr(part, "ndim", 0) for part in data)
    if (isinstance(data, tuple) or arrays) and len(data) == 2 and labels is None:
        return open_samples(data[0], data[1])
    array = None if labels is None and isinstance(data, list) else as_array(data)
    if array is not None:
        return _from_arrays(array, labels, is_tensor(data))
    return _from_stream(data, labels)


@guarded("The classes could not be counted")
def count_classes(data: Any) -> int | None:
    """K of the data, if it is known without reading a sample; else ``None``."""
    source = open_samples(data)
    y = source.y
    if y is None or getattr(y, "ndim", 1) > 1:
        return None if source.names is None else len(source.names)
    labels = y.tolist() if hasattr(y, "tolist") else y
    every = enumerate(labels)
    return len({plain(label, i) for i, label in every if label == label})  # NaN is no class


def sample_count(data: Any) -> int | None:
    """How many samples there are, if that is known without reading them; else ``None``."""
    return None if _is_iterator(data) else open_samples(data).samples


@guarded("The first batch of your data could not be read")
def first_batch(data: Any) -> Any:
    """Two samples as a model takes them; ``None`` if they cannot be known.

    A tensor, or a mapping if there are several columns. Labels are left out, bytes and doubles
    become float32, and images of NumPy get their channels first. A loader's sampler, order and
    workers are not touched, and an iterator is not consumed.
    """
    if _is_iterator(data):
        return None
    source = open_samples(data)
    if source.x is not None:
        return _as_input(source.x[:2], source.tensor)
    if isinstance(data, Samples):  # files as they lie on disk, not yet made ready for a model
        return None
    held = data.dataset if is_loader(data) else data
    if hasattr(held, "__getitem__") and _len(held) is not None:
        items = [item for _, item in zip(range(2), _items(held, None), strict=False)]
    elif (stream := iter(held)) is not held:
        items = [item for _, item in zip(range(2), stream, strict=False)]
    else:
        return None
    from torch.utils.data import default_collate

    single = is_loader(data) and data.batch_size is None and data.batch_sampler is None
    collate = data.collate_fn if is_loader(data) else default_collate
    try:
        batch = collate(items[0] if single else items)
    except (TypeError, RuntimeError, IndexError):  # pictures, texts, several sizes, nothing
        return None
    if isinstance(batch, Mapping):
        inputs = {key: part for key, part in batch.items() if key not in _LABELS}
        if not all(map(is_tensor, inputs.values())):
            return None
        inputs = {key: _as_input(part, True) for key, part in inputs.items()}
        return next(iter(inputs.values())) if len(inputs) == 1 else inputs
    first = batch[0] if isinstance(batch, list | tuple) and batch else batch
    return _as_input(first, True) if is_tensor(first) else None


def _as_input(values: Any, tensor: bool) -> Any:
    """A batch as a model takes it."""
    import torch

    batch = torch.as_tensor(values)
    if not tensor and batch.ndim == 4 and batch.shape[1] not in (1, 3, 4):
        batch = batch.movedim(-1, 1)
    if not tensor and batch.ndim == 3 and batch.dtype == torch.uint8:
        batch = batch[:, None]  # gray images
    return batch.float() if batch.dtype in (torch.uint8, torch.float64) else batch


def _is_iterator(data: Any) -> bool:
    return hasattr(data, "__next__")


@guarded("The batches could not be counted")
def batch_count(data: Any) -> int | None:
    """How many batches a DataLoader gives in an epoch; ``None`` if it is none or does not say."""
    count = _len(data) if is_loader(data) else None
    if count == 0:
        raise TstarError(
            "A DataLoader must give at least one batch per epoch, got none; with drop_last=True "
            "its data set must hold a whole batch."
        )
    return count


def _from_dataset(data: Any) -> Samples:
    array, name = as_array(data.x_train), str(getattr(data, "name", "your data"))
    assert array is not None
    names, tokens = getattr(data, "classes", None), getattr(data, "domain", None) == "tokens"
    arrays = _from_arrays(array, data.y_train, True)
    return replace(arrays, name=name, names=names, tokens=tokens)


def _from_arrays(array: NDArray[Any], labels: Any, tensor: bool) -> Samples:
    if labels is None or isinstance(labels, str):
        raise TstarError("labels must be given with an array of data: csg(data, labels).")
    array, y = numbers(array, "data"), label_array(labels)
    if array.ndim < 2 or 0 in array.shape:
        raise TstarError(
            "data must have one row per sample, (N, D) or (N, H, W, C), and at least two samples; "
            f"got shape {array.shape}."
        )
    _same_length(len(array), len(y))
    tokens = tensor and looks_like_tokens(array.shape[1:], array.dtype)
    return Samples(x=array, y=y, samples=len(array), tokens=tokens, tensor=tensor)


def _from_stream(data: Any, labels: Any) -> Samples:
    if not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        raise TstarError(
            "data must be an array, a tensor, a Dataset or a DataLoader, got "
            f"{type(data).__name__}."
        )
    loads = is_loader(data)
    held = data.dataset if loads else data
    indexed = hasattr(held, "__getitem__") and _in_order(data)
    listed = _listed(held)
    pairs = partial(_pairs, data, labels)
    if labels is not None and not isinstance(labels, str):
        listed = given = list(label_array(labels))
        pairs = partial(_zipped, data, given)
    elif loads:
        if not getattr(data.collate_fn, "__module__", "").startswith("torch."):
            listed = None  # they may be changed on the way
        pairs = partial(_batches, data, labels)
    y = listed if listed is None or isinstance(listed, list | tuple) else as_array(listed)
    if isinstance(y, np.ndarray):
        refuse_real(y)
    names = getattr(held, "classes", None)
    features = getattr(held, "features", None)  # of Hugging Face
    if isinstance(features, Mapping):
        names = getattr(features.get(labels or "label"), "names", names)
    names = names if isinstance(names, list | tuple) else None
    return Samples(y=y, pairs=pairs, samples=_len(held), indexed=indexed, names=names)


def _listed(data: Any) -> Any:
    """The labels that a data set lists: ``targets``, ``labels``, the last of two tensors."""
    tensors: Sequence[Any] = getattr(data, "tensors", ())
    names = ("targets", "labels")
    every = [tensors[1]] if len(tensors) == 2 else [getattr(data, name, None) for name in names]
    return next((y for y in every if isinstance(y, list | tuple) or hasattr(y, "dtype")), None)


def _pairs(data: Any, column: str | None, positions: Sequence[int] | None) -> Pairs:
    return (pair(item, column) for item in _items(data, positions))


def _zipped(data: Any, labels: list[Any], positions: Sequence[int] | None) -> Pairs:
    """Samples whose labels are kept apart, which must be as many."""
    chosen = labels if positions is None else [labels[i] for i in positions]
    for item, label in zip(_items(data, positions), chosen, strict=True):
        yield (item[0] if isinstance(item, tuple) else item), label


def _same_length(samples: int, labels: int) -> None:
    if samples != labels:
        raise TstarError(
            f"data and labels must have the same length, got {samples} samples and {labels} labels."
        )


def _items(data: Any, positions: Sequence[int] | None) -> Iterator[Any]:
    """The items of a data set by index (its ``__iter__`` may never end), else by iteration."""
    if hasattr(data, "__getitem__") and (count := _len(data)) is not None:
        for position in range(count) if positions is None else positions:
            with guarded(f"Item {position} of the data could not be read"):
                item = data[int(position)]
            yield item
    else:
        yield from data


def pair(item: Any, column: str | None = None) -> tuple[Any, Any]:
    """The sample and the label of one item or batch."""
    if isinstance(item, Mapping):
        wanted = _LABELS if column is None else (column,)
        columns = [next((n for n in names if n in item), None) for names in (_INPUTS, wanted)]
        if None in columns:
            raise TstarError(
                f"Each item must have a column of samples ({', '.join(_INPUTS)}) and one of labels "
                f"({', '.join(wanted)}), got {', '.join(map(str, item))}; rename the columns, or "
                "pass labels='NAME'."
            )
        return item[columns[0]], item[columns[1]]
    if isinstance(item, tuple | list) and len(item) >= 2:
        return item[0], item[1]
    raise TstarError(
        "Each item of the data must be a (sample, label) pair or a dictionary with both, got "
        f"{type(item).__name__}; pass labels=… if they are stored separately."
    )


def _batches(loader: Any, column: str | None, positions: Sequence[int] | None) -> Pairs:
    """(sample, label) of a loader's data set: in its order, or as a user's own sampler chooses."""
    import torch
    from torch.utils.data import DataLoader

    options: dict[str, Any] = {"batch_sampler": loader.batch_sampler}
    if _in_order(loader):
        options = {"sampler": positions, "batch_size": loader.batch_size}
    own = torch.Generator()  # which its iterator draws from, in place of the process's
    batches = DataLoader(loader.dataset, collate_fn=loader.collate_fn, generator=own, **options)
    for batch in batches:
        samples, labels = pair(batch, column)
        _same_length(len(samples), len(labels))
        yield from zip(samples, labels, strict=True)


def _in_order(data: Any) -> bool:
    """Whether every sample is visited once: not if a loader has a sampler of the user's own."""
    if not is_loader(data):
        return True
    from torch.utils.data import IterableDataset, RandomSampler, SequentialSampler

    if isinstance(data.dataset, IterableDataset) or data.batch_sampler is None:
        return True
    return data.batch_size is not None and type(data.sampler) in (RandomSampler, SequentialSampler)


def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_loader(data: Any) -> bool:
    loading = sys.modules.get("torch.utils.data")
    return loading is not None and isinstance(data, loading.DataLoader)


def _len(data: Any) -> int | None:
    try:
        return len(data)
    except (TypeError, NotImplementedError):  # an endless stream, or a sampler that does not say
        return None


def as_array(value: Any, what: str = "data") -> NDArray[Any] | None:
    """The NumPy array of anything that is one, or a list of numbers; else ``None``."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).any():
        raise TstarError(f"{what} must have no masked values; leave these samples out.")
    if is_tensor(value):
        known = "bfloat16" not in str(value.dtype) and "float8" not in str(value.dtype)
        return np.asarray((value if known else value.float()).detach().cpu().numpy())
    first = value
    while isinstance(first, list | tuple) and first:
        first = first[0]
    listed = first is not value and isinstance(first, int | float | np.number)
    return np.asarray(value) if listed or hasattr(type(value), "__array__") else None


def numbers(array: NDArray[Any], what: str) -> NDArray[Any]:
    """The array if it holds real numbers; Python's numbers become float64."""
    if array.dtype.kind == "O" or array.dtype == np.longdouble != np.float64:
        with guarded(f"{what} must hold numbers"):
            array = array.astype(np.float64)
    if array.dtype.kind not in "fiub":
        raise TstarError(f"{what} must hold numbers, got dtype {array.dtype}.")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def looks_like_tokens(sample_shape: Sequence[int], dtype: np.dtype[Any]) -> bool:
    """Whether a sample is a row of wide whole numbers, as a tokenizer gives them."""
    return len(sample_shape) == 1 and dtype.kind in "iu" and dtype.itemsize > 1


def label_array(labels: Any) -> Any:
    """Labels as a 1-D array, or as the list that they are."""
    array = None if isinstance(labels, list | tuple) else as_array(labels, "labels")
    if array is None:
        labels = list(labels)
        refuse_real(np.array([label for label in labels if isinstance(label, float)]))
        return labels
    refuse_real(array)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.ndim != 1:
        raise _no_classes(f"shape {array.shape}")
    return array


def refuse_real(labels: NDArray[Any]) -> None:
    """Refuse targets of a regression, or of a sigmoid per class; numbers that recur are classes."""
    if labels.dtype.kind == "f" and labels.size:
        real = labels[np.isfinite(labels) & (labels != np.round(labels))]
        if labels[0].size > 1 or (len(labels) > 1 and 2 * len(np.unique(real)) > len(labels)):
            raise _no_classes("real numbers")


def _no_classes(got: str) -> TstarError:
    return TstarError(
        f"labels must be classes, one value per sample, got {got}. One-hot labels need an argmax "
        "first; T does not apply to a regression or to several labels per sample."
    )


def encode(labels: Iterable[Any]) -> tuple[NDArray[np.int64], tuple[Hashable, ...]]:
    """Codes by first appearance, and the classes in that order: names play no part in it."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "biuU":
        known = labels.tolist()
    else:
        known = [plain(label, i) for i, label in enumerate(labels)]
    seen: dict[Hashable, int] = {}
    codes = np.array([seen.setdefault(label, len(seen)) for label in known], dtype=np.int64)
    return codes, tuple(seen)


def plain(label: Any, position: int) -> Hashable:
    """A label as a hashable Python value: arrays and tensors of one value are unpacked."""
    if hasattr(label, "item") and tuple(getattr(label, "shape", ())) in ((), (1,)):
        label = label.item()
    shape = getattr(label, "shape", None)
    if label is None or (shape is None and label != label):  # NaN
        raise TstarError(
            f"Every sample must have a label, but sample {position} has {shown(label)}."
        )
    if shape is not None or not isinstance(label, Hashable):
        raise _no_classes(f"{type(label).__name__} for sample {position}")
    return label


def memory_limit() -> int:
    """How many bytes of data may be kept: half of the memory, or ``$TSTAR_MEMORY_MB``."""
    given = os.environ.get(MEMORY, "")
    if given and not given.isdecimal():
        raise TstarError(f"{MEMORY} must be a whole number, got {given!r}.")
    if given:
        return int(given[:15]) << 20
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # not on Windows
        return 4096 << 20
