"""Labeled samples as a script has them, opened the same way for ``csg`` and ``recommend``.

Arrays with labels, a ``Dataset``, a ``DataLoader``, a list of pairs. Names, folders, files and
tables are opened by :func:`tstar.lab.data.open_data`, which gives the same :class:`Samples`.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError, guarded, shown

T = TypeVar("T")
Pairs = Iterator[tuple[Any, Any]]
MEMORY = "TSTAR_MEMORY_MB"
_INPUTS = (
    *("image", "img", "images", "pixel_values", "input", "inputs", "x", "data", "features"),
    "input_ids",
)
_LABELS = ("label", "labels", "target", "targets", "y", "class", "fine_label")
_reading = threading.RLock()  # one thread at a time puts its own state into the generators


@dataclass(frozen=True, eq=False)
class Samples:
    """Labeled samples: whole arrays ``x`` and ``y``, or a stream of (sample, label) pairs."""

    name: str = "your data"
    x: NDArray[Any] | None = None  # (N, …); None for a stream
    y: Any = None  # the labels, as far as they are known without reading a sample
    pairs: Callable[[Sequence[int] | None], Pairs] | None = None  # at these positions; None: all
    length: int | None = None  # how many samples there are to choose positions from
    samples: int | None = None  # how many there are, if that is known without reading them
    names: Sequence[Any] | None = None  # of classes that are numbers
    tokens: bool = False  # ids, whose distances mean nothing
    tensor: bool = False  # images have their channels first

    def read(self, positions: Sequence[int] | None = None, seed: int = 0) -> Pairs:
        """The pairs; code of yours that runs on the way draws on generators of its own."""
        if self.pairs is not None:
            return apart(self.pairs(positions), seed)
        assert self.x is not None
        chosen = range(len(self.x)) if positions is None else positions
        return ((self.x[i], self.y[i]) for i in chosen)


@guarded("The data could not be opened")
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
    y = open_samples(data).y
    if y is None or getattr(y, "ndim", 1) > 1:
        return None
    labels = y.tolist() if hasattr(y, "tolist") else y
    return len({label for label in labels if label == label})  # NaN is no class


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
    found = _from_arrays(array, data.y_train, True)
    return replace(found, name=name, names=names, tokens=tokens)


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
    N = len(array)
    return Samples(x=array, y=y, length=N, samples=N, tokens=tokens, tensor=tensor)


def _from_stream(data: Any, labels: Any) -> Samples:
    if not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        raise TstarError(
            "data must be an array, a tensor, a Dataset or a DataLoader, got "
            f"{type(data).__name__}."
        )
    loads = is_loader(data)
    held = data.dataset if loads else data
    length = _len(held) if hasattr(held, "__getitem__") and _in_order(data) else None
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
    return Samples(y=y, pairs=pairs, length=length, samples=_len(held), names=names)


def _listed(data: Any) -> Any:
    """The labels that a data set lists: torchvision's ``targets``, the last of two tensors."""
    tensors: Sequence[Any] = getattr(data, "tensors", ())
    listed = tensors[1] if len(tensors) == 2 else getattr(data, "targets", None)
    return listed if isinstance(listed, list | tuple) or hasattr(listed, "dtype") else None


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
        found = [next((n for n in names if n in item), None) for names in (_INPUTS, wanted)]
        if None in found:
            raise TstarError(
                f"Each item must have a column of samples ({', '.join(_INPUTS)}) and one of labels "
                f"({', '.join(wanted)}), got {', '.join(map(str, item))}; rename the columns, or "
                "pass labels='NAME'."
            )
        return item[found[0]], item[found[1]]
    if isinstance(item, tuple | list) and len(item) >= 2:
        return item[0], item[1]
    raise TstarError(
        "Each item of the data must be a (sample, label) pair or a dictionary with both, got "
        f"{type(item).__name__}; pass labels=… if they are kept apart."
    )


def _batches(loader: Any, column: str | None, positions: Sequence[int] | None) -> Pairs:
    """(sample, label) of a loader's data set: in its order, or as a user's own sampler chooses."""
    from torch.utils.data import DataLoader

    options: dict[str, Any] = {"batch_sampler": loader.batch_sampler}
    if _in_order(loader):
        options = {"sampler": positions, "batch_size": loader.batch_size}
    for batch in DataLoader(loader.dataset, collate_fn=loader.collate_fn, **options):
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


def apart(items: Iterator[T], seed: int) -> Iterator[T]:
    """The items, while Python's, NumPy's and torch's generators have a seeded state of their own.

    Random transforms then give the same samples at the same seed, and the process-wide generators
    are as they were after each item.
    """
    torch, end = sys.modules.get("torch"), object()
    generator = torch and torch.Generator().manual_seed(seed % 2**63).get_state()
    legacy = np.random.RandomState(seed % 2**32).get_state()
    own = random.Random(seed).getstate(), legacy, generator
    while True:
        with _reading:
            theirs = generator_states()
            set_generators(own)
            try:
                item: Any = next(items, end)
                own = generator_states()
            finally:
                set_generators(theirs)
        if item is end:
            return
        yield item


def generator_states() -> tuple[Any, ...]:
    """Of the process-wide generators of Python, NumPy and torch."""
    torch = sys.modules.get("torch")
    return random.getstate(), np.random.get_state(), torch and torch.get_rng_state()  # noqa: NPY002


def set_generators(states: tuple[Any, ...]) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    if states[2] is not None:
        sys.modules["torch"].set_rng_state(states[2])


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


def first_batch(data: Any) -> Any:  # TEMP
    from tstar.output_layer import inputs_of

    if hasattr(data, "x_train"):
        return data.x_train[:2].float()
    if is_loader(data):
        return inputs_of(next(iter(data)))
    return None


def sample_count(data: Any) -> int | None:  # TEMP
    return open_samples(data).samples
