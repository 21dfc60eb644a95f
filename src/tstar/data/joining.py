"""Several data sets as one task: the classes side by side, for more classes than any of them has."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch

from tstar.data import images
from tstar.data.dataset import DataSet, Texts
from tstar.data.text import vectors
from tstar.errors import TstarError


def split_names(name: str) -> list[str]:
    """The names in ``"a+b"``."""
    names = name.split("+")
    if not all(names):
        raise TstarError(f"A data set must stand on both sides of each '+', but got {name!r}.")
    return names


def join(sets: Sequence[DataSet], name: str | None = None) -> DataSet:
    """All samples and all classes of ``sets``, which must be of one domain and shape.

    Labels of each set are counted on from those before it, and its classes are called
    ``"SET/CLASS"``: a class that occurs in two sets stays two classes. Texts are weighed anew over
    all training texts, so that a set cannot be told by its weights alone.
    """
    if len(sets) < 2:
        raise TstarError(f"At least two data sets must be given to be joined, but got {len(sets)}.")
    first = sets[0]
    for other in sets[1:]:
        if other.domain != first.domain or other.x_train.shape[1:] != first.x_train.shape[1:]:
            raise TstarError(
                "Joined data sets must have one domain and one shape, but "
                f"{first.name} has {_kind(first)} and {other.name} {_kind(other)}"
                + ("; pass size= to bring images to one." if other.domain == "image" else ".")
            )
    twice = sorted({one.name for one in sets if [s.name for s in sets].count(one.name) > 1})
    if twice:
        raise TstarError(
            f"Joined data sets must have different names, but {twice[0]!r} occurs twice."
        )
    starts = [0, *accumulate(one.num_classes for one in sets)]
    parts = {
        field: images.join([getattr(one, field) for one in sets]) for field in ("x_train", "x_test")
    }
    for field in ("y_train", "y_test"):
        labels = [getattr(one, field) + start for one, start in zip(sets, starts, strict=False)]
        parts[field] = torch.cat(labels)
    texts = _texts(sets)
    if texts is not None and first.domain == "text":
        parts["x_train"], parts["x_test"] = vectors(
            list(texts[0]), list(texts[1]), first.in_channels
        )
    classes = tuple(f"{one.name}/{label}" for one in sets for label in one.classes)
    joined = name if name is not None else "+".join(one.name for one in sets)
    return DataSet(joined, first.domain, **parts, classes=classes, texts=texts)


def _texts(sets: Sequence[DataSet]) -> Texts | None:
    """The texts of all sets, if every one has them."""
    train: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    for one in sets:
        if one.texts is None:
            return None
        train, test = train + one.texts[0], test + one.texts[1]
    return train, test


def _kind(data: DataSet) -> str:
    return f"{data.domain} samples of {'×'.join(map(str, data.x_train.shape[1:]))}"
