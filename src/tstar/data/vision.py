"""Data sets through torchvision's loaders, in the layout that they expect below the root.

CIFAR's archives are pickles. torchvision compares their checksums before it opens them; this is the
only place where anything is unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tstar.data.dataset import DataSet
from tstar.data.images import stack
from tstar.data.resize import area_resize
from tstar.data.splits import test_rows
from tstar.errors import TstarError, require

Part = tuple[Tensor, Tensor]


def _arrays(sets: Sequence[Any], size: int | None) -> Part:
    """Of loaders that hold all images in ``data`` (N×H×W×C, or N×C×H×W in STL10)."""
    images, labels = [], []
    for one in sets:
        x = np.asarray(one.data)
        x = x if x.shape[1] == 3 else x.transpose(0, 3, 1, 2)
        pixels = torch.from_numpy(np.ascontiguousarray(x))
        images.append(pixels if size is None else area_resize(pixels, size))
        labels.append(_targets(one))
    return torch.cat(images), torch.cat(labels)


def _streamed(sets: Sequence[Any], size: int | None, name: str) -> Part:
    """Of loaders that open one image at a time."""
    starts = np.cumsum([0, *map(len, sets)])

    def open_image(index: int) -> Any:
        which = int(np.searchsorted(starts, index, side="right")) - 1
        inner = index - int(starts[which])
        try:
            return sets[which][inner][0]
        except (OSError, ValueError, SyntaxError) as error:
            raise TstarError(f"Image {inner} of {name} could not be read: {error}") from error

    return stack(open_image, int(starts[-1]), size, name), torch.cat([_targets(s) for s in sets])


def _targets(one: Any) -> Tensor:
    """All labels, without opening an image; the loaders keep them under different names."""
    for attribute in ("targets", "labels", "_labels", "y"):
        if hasattr(one, attribute):
            return torch.as_tensor(np.asarray(getattr(one, attribute)), dtype=torch.int64)
    return torch.tensor([label for _, label in one._samples], dtype=torch.int64)


def _read(
    name: str,
    loader: str,
    train: Sequence[dict[str, Any]],
    test: Sequence[dict[str, Any]],
    root: Path,
    size: int | None,
    download: bool,
) -> DataSet:
    """``train`` and ``test`` list the arguments that choose the official parts; no ``test``: none exists."""
    make = getattr(require("torchvision.datasets", "vision"), loader)
    if name == "flowers102":
        require("scipy.io", "fit")
    sets = [make(str(root), download=download, **arguments) for arguments in (*train, *test)]
    parts = [sets[: len(train)], sets[len(train) :]]
    read: Callable[[Sequence[Any], int | None], Part] = (
        _arrays if hasattr(sets[0], "data") else partial(_streamed, name=name)
    )
    x, y = read(parts[0], size)
    if test:
        x_test, y_test = read(parts[1], size)
    else:
        kept, drawn = test_rows(y)
        x, y, x_test, y_test = x[kept], y[kept], x[drawn], y[drawn]
    return DataSet(name, "image", x, y, x_test, y_test, _class_names(sets[0], int(y.max()) + 1))


def _class_names(one: Any, count: int) -> tuple[str, ...]:
    found = getattr(one, "classes", None) or getattr(one, "categories", None)
    return tuple(found) if found else tuple(map(str, range(count)))


def _split(*parts: str) -> list[dict[str, Any]]:
    return [{"split": part} for part in parts]


# Official validation parts join the training part: every run holds out one of its own.
READERS: dict[str, Callable[[Path, int | None, bool], DataSet]] = {
    name: partial(_read, name, loader, train, test)
    for name, loader, train, test in (
        ("cifar10", "CIFAR10", [{"train": True}], [{"train": False}]),
        ("cifar100", "CIFAR100", [{"train": True}], [{"train": False}]),
        ("stl10", "STL10", _split("train"), _split("test")),
        ("gtsrb", "GTSRB", _split("train"), _split("test")),
        ("eurosat", "EuroSAT", [{}], []),
        ("caltech101", "Caltech101", [{}], []),
        ("flowers102", "Flowers102", _split("train", "val"), _split("test")),
        ("oxford-iiit-pet", "OxfordIIITPet", _split("trainval"), _split("test")),
        ("dtd", "DTD", _split("train", "val"), _split("test")),
    )
}
