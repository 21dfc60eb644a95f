"""The one door: whatever holds labeled samples comes in here, for csg, recommend, check and sweeps alike."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tstar.data import streams
from tstar.data.arrays import as_array, is_tensor, label_array, numbers, refuse_lazy, refuse_real
from tstar.data.images import Images, streamed
from tstar.errors import TstarError

if TYPE_CHECKING:
    from tstar.data.dataset import DataSet

_SHUFFLED = 100_000_000  # samples; the order of more does not fit into memory easily
_TRAIN = ("train", "training")
_TEST = ("test", "testing", "validation", "valid", "val")


@dataclass(frozen=True, eq=False)
class Source:
    """Labeled samples as they came in: whole arrays ``x`` and ``y``, or a stream of pairs.

    ``pairs(positions)`` gives (sample, label) one by one; of map-style data only those at
    ``positions``, unless ``None``. ``length`` is the number of samples where positions can be chosen. Of a stream ``y``
    is known where the data list their labels.
    """

    name: str = "your data"
    x: NDArray[Any] | None = None
    y: Any = None
    pairs: Callable[[Sequence[int] | None], streams.Pairs] | None = None
    length: int | None = None
    total: int | None = None  # samples of a stream, also where positions cannot be chosen
    names: Sequence[Any] | None = None  # of classes that are numbers
    tokens: bool = False
    tensor: Any = None  # x as it came, if it came as a tensor
    test: Source | None = None
    foreign: bool = False  # reading runs code that may draw on the process-wide generators
    unreadable: list[str] = field(default_factory=list)  # files, once the pairs have been read

    @property
    def samples(self) -> int | None:
        """How many there are, where it is known without reading them."""
        return self.length if self.total is None else self.total

    def some(self, most: int | None, seed: int) -> NDArray[np.int64] | None:
        """At most ``most`` positions, drawn by ``seed``, ascending; ``None`` for all."""
        if most is None or self.length is None or self.length <= most:
            return None
        random = np.random.default_rng((seed, 0xD00A))
        if self.length > _SHUFFLED:
            return np.sort(random.choice(self.length, most, replace=False, shuffle=False))
        return np.sort(random.permutation(self.length)[:most])


def open_data(
    data: Any,
    labels: Any = None,
    *,
    size: int | None = None,
    root: str | os.PathLike[str] | None = None,
) -> Source:
    """Recognize what ``data`` are; nothing is read yet but files of arrays.

    - a name of :func:`tstar.data.names`, an image folder, an ``.npz`` file, a CSV file of text;
    - an array or tensor, a table (pandas, polars: one row per sample) with ``labels``, an array or
      the name of a column; a pair (samples, labels); a dictionary of columns;
    - a torch ``Dataset`` or ``DataLoader``, a Hugging Face data set, a list of (sample, label) pairs;
    - a dictionary of parts such as ``DatasetDict``, of which ``"train"`` is read;
    - a :class:`tstar.data.DataSet`, of which the training part is read;
    - a :class:`Source`, opened before.

    ``size`` is for images that are read by name. Masked arrays are refused.
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, str | os.PathLike):
        return _open_path(data, labels, size, root)
    if hasattr(data, "x_train") and hasattr(data, "y_train"):
        return _from_dataset(data)
    if isinstance(data, Mapping):
        return _from_mapping(data, labels)
    if isinstance(data, tuple) and len(data) == 2 and labels is None:
        return open_data(data[0], data[1])
    refuse_lazy(data)
    if isinstance(labels, str) and hasattr(data, "columns") and labels in data.columns:
        rest = [column for column in data.columns if column != labels]
        return open_data(data[rest], data[labels])
    if isinstance(data, list) and len(data) == 2 and labels is None and _are_arrays(data):
        return open_data(data[0], data[1])
    array = None if labels is None and isinstance(data, list) else as_array(data)
    if array is not None:
        return _from_arrays(data, array, labels)
    return _from_stream(data, labels)


def count_classes(data: Any) -> int | None:
    """K of the data, where it is known without reading a sample; else ``None``."""
    source = open_data(data)
    try:
        labels = source.y.tolist() if hasattr(source.y, "tolist") else source.y
        return len({label for label in labels if label == label})  # NaN is no class
    except (TypeError, RuntimeError):  # not known, or more than one value per sample
        return None


def _open_path(
    path: str | os.PathLike[str], labels: Any, size: int | None, root: str | os.PathLike[str] | None
) -> Source:
    from tstar.data.files import read_arrays
    from tstar.data.folders import find_images, image_pairs
    from tstar.data.loading import load, locate, takes_size

    if labels is not None:
        raise TstarError(
            f"A path brings its own labels, got others of type {type(labels).__name__}; leave them out."
        )
    found = locate(path, root)
    if found is not None and found.is_dir():
        layout = find_images(found)
        unreadable: list[str] = []
        pairs = partial(image_pairs, layout.train, layout.classes, unreadable)
        return Source(
            layout.name,
            y=[label for _, label in layout.train],
            pairs=pairs,
            length=len(layout.train),
            names=layout.classes,
            unreadable=unreadable,
        )
    if found is not None and found.suffix == ".npz":
        stored = read_arrays(found)
        source = _from_arrays(None, stored.x, stored.y, f"The samples of {found}")
        names = None if stored.names is None else stored.names.ravel().tolist()
        return replace(source, name=found.stem, names=names)
    named = found is None and takes_size(path)
    return _from_dataset(load(path, root=root, size=size if named else None))


def _from_dataset(data: DataSet) -> Source:
    if (images := streamed(data.x_train)) is not None:
        pairs, count = partial(_decoded, images, data.y_train), len(images)
        return Source(data.name, y=data.y_train, pairs=pairs, length=count, names=data.classes)
    source = _from_arrays(data.x_train, as_array(data.x_train), data.y_train)
    tokens = getattr(data, "domain", None) == "tokens"
    return replace(source, name=data.name, names=data.classes, tokens=tokens)


def _decoded(x: Images, y: Any, positions: Sequence[int] | None) -> streams.Pairs:
    rows = range(len(y)) if positions is None else positions
    for start in range(0, len(rows), 64):
        some = list(rows[start : start + 64])
        yield from zip(x[some], y[some].tolist(), strict=True)


def _from_mapping(data: Mapping[Any, Any], labels: Any) -> Source:
    train = next((data[key] for key in _TRAIN if key in data), None)
    if train is None:
        x, y = streams.pair(data, labels if isinstance(labels, str) else None, "the dictionary")
        return open_data(x, y)
    test = next((data[key] for key in _TEST if key in data), None)
    return replace(open_data(train, labels), test=None if test is None else open_data(test, labels))


def _from_arrays(data: Any, array: NDArray[Any] | None, labels: Any, what: str = "data") -> Source:
    assert array is not None
    if labels is None or isinstance(labels, str):
        raise TstarError(
            "labels must be given with an array or a table of data: csg(data, labels), or the name of "
            "a table's label column."
        )
    array, y = numbers(array, what), label_array(labels)
    if array.ndim < 2:
        raise TstarError(
            f"{what} must have one row per sample, (N, D) or (N, H, W, C), got shape {array.shape}."
        )
    if len(y) != len(array):
        raise TstarError(
            f"{what} and the labels must have the same length, got {len(array)} samples and "
            f"{len(y)} labels."
        )
    if 0 in array.shape:
        raise TstarError(f"{what} must hold at least two samples, got shape {array.shape}.")
    tensor = data if is_tensor(data) else None
    tokens = tensor is not None and array.ndim == 2 and array.dtype.kind in "iu"
    return Source(
        x=array, y=y, length=len(array), tensor=tensor, tokens=tokens and array.dtype.itemsize > 1
    )


def _from_stream(data: Any, labels: Any) -> Source:
    if not hasattr(data, "__iter__") and not hasattr(data, "__getitem__"):
        raise TstarError(
            "data must be an array, a table, a tensor, a Dataset, a DataLoader, a Hugging Face data set, a "
            f"name or a path, got {type(data).__name__}."
        )
    foreign = streams.runs_foreign_code(data)
    if labels is not None and not isinstance(labels, str):
        given = list(label_array(labels))
        return Source(
            y=given,
            pairs=lambda positions: _zipped(data, given, positions),
            length=_length(data),
            foreign=foreign,
        )
    loads = streams.is_loader(data)
    read, held = (streams.batches, data.dataset) if loads else (streams.items, data)
    known = streams.known_labels(data, labels)
    if known is not None:
        refuse_real(known)
    return Source(
        y=streams.listed_labels(held),
        pairs=lambda positions: read(data, labels, positions),
        length=_length(data),
        total=_len(held),
        names=_class_names(data, labels),
        foreign=foreign,
    )


def _zipped(data: Any, labels: list[Any], positions: Sequence[int] | None) -> Iterator[Any]:
    """Samples whose labels are kept apart, which must be as many."""
    count = _length(data)
    if count is not None:
        _same_length(count, len(labels))
        chosen = labels if positions is None else [labels[i] for i in positions]
    else:
        chosen = labels
    count = 0
    for item in streams.each(data, positions):
        count += 1
        if count <= len(chosen):
            yield (item[0] if isinstance(item, tuple) else item), chosen[count - 1]
    _same_length(count, len(chosen))


def _same_length(samples: int, labels: int) -> None:
    if samples != labels:
        raise TstarError(
            f"data and labels must have the same length, got {samples} samples and {labels} labels."
        )


def _length(data: Any) -> int | None:
    """The number of samples of data whose items can be had by position."""
    if streams.is_loader(data):
        return _length(data.dataset) if streams.usual_order(data) else None
    return _len(data) if hasattr(data, "__getitem__") else None


def _len(data: Any) -> int | None:
    try:
        return len(data)
    except TypeError:
        return None


def _class_names(data: Any, labels: Any) -> Any:
    """The names of integer classes that a data set carries: torchvision's, or Hugging Face's."""
    column = labels if isinstance(labels, str) else "label"
    source = getattr(data, "dataset", data)
    features = getattr(source, "features", None)
    if isinstance(features, dict) and hasattr(features.get(column), "names"):
        return features[column].names
    names = getattr(source, "classes", None)
    return names if isinstance(names, list | tuple) else None


def _are_arrays(data: list[Any]) -> bool:
    return all(getattr(part, "ndim", 0) >= 1 for part in data)
