"""A data set: two parts, labels 0…K−1, and the names of its classes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import torch
from torch import Tensor

from tstar.data.images import pieces, take
from tstar.data.splits import stratified
from tstar.data.validation import DOMAINS, Domain, check
from tstar.errors import TstarError, unknown
from tstar.numbers import whole

Texts = tuple[tuple[str, ...], tuple[str, ...]]
assert set(DOMAINS) == set(get_args(Domain))


@dataclass(frozen=True, eq=False)
class DataSet:
    """Arrays of a classification task.

    ``x_*`` are images (uint8, N×C×H×W), signals (float32, N×C×L), or vectors (float32, N×D; text is
    stored as the vectors it was turned into, or as the int64 token ids of one tokenizer, N×L, domain
    ``"tokens"``). ``y_*`` are int64 labels 0…K−1, every one of which
    occurs in the training part. ``texts`` are the texts themselves, (training, test), where the data
    set was read from such. Images that do not fit into memory are :class:`tstar.data.images.Images`, which are read
    as a tensor is. Made by :func:`tstar.data.load`; the constructor checks all of this.
    """

    name: str
    domain: Domain
    x_train: Tensor
    y_train: Tensor
    x_test: Tensor
    y_test: Tensor
    classes: tuple[str, ...]
    texts: Texts | None = None

    def __post_init__(self) -> None:
        check(self)

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.classes)

    @property
    def in_channels(self) -> int:
        """C of images and signals, D of vectors: what :func:`tstar.models.build` asks for."""
        return int(self.x_train.shape[1])

    def checksum(self) -> str:
        """SHA-256 over the four arrays (dtype, shape, values) in hexadecimal.

        Names are left out, so that a renamed copy is recognized as the same data.
        """
        digest = hashlib.sha256()
        for field in ("x_train", "y_train", "x_test", "y_test"):
            values = getattr(self, field)
            for start, part in pieces(values):
                array: Any = part.contiguous().numpy()
                array = array.astype(array.dtype.newbyteorder("<"), copy=False)
                if start == 0:
                    head = f"{field} {array.dtype.str} {tuple(values.shape)}\n"
                    digest.update(head.encode())
                digest.update(memoryview(array).cast("B"))
        return digest.hexdigest()

    def subset(
        self, train: int | None = None, test: int | None = None, *, seed: int = 0
    ) -> DataSet:
        """``train`` and ``test`` samples of the two parts, drawn in proportion to the classes.

        ``None`` keeps a part whole. At least one training sample of each class must fit.
        """
        kept_train = _draw(self.y_train, train, seed, "train", self.num_classes)
        kept_test = _draw(self.y_test, test, seed, "test", 1)
        return replace(
            self,
            x_train=take(self.x_train, kept_train),
            y_train=self.y_train[kept_train],
            x_test=take(self.x_test, kept_test),
            y_test=self.y_test[kept_test],
            texts=_texts(self.texts, kept_train, kept_test),
        )

    def regroup(
        self, groups: Sequence[Sequence[int]], classes: Sequence[str], name: str
    ) -> DataSet:
        """A new task: old labels ``groups[i]`` become label i, named ``classes[i]``; the rest is dropped.

        Groups of one label choose classes; larger ones merge them.
        """
        table = torch.full((self.num_classes,), -1, dtype=torch.int64)
        for new, group in enumerate(groups):
            for old in group:
                if not 0 <= old < self.num_classes:
                    raise TstarError(
                        f"Classes of {self.name} must be in 0…{self.num_classes - 1}, but got {old}."
                    )
                if table[old] >= 0:
                    raise TstarError(
                        f"Each class may be in one group only, but {old} is in two; remove one."
                    )
                table[old] = new
        train, test = table[self.y_train], table[self.y_test]
        kept_train, kept_test = ((new >= 0).nonzero()[:, 0] for new in (train, test))
        return replace(
            self,
            name=name,
            x_train=take(self.x_train, kept_train),
            y_train=train[kept_train],
            x_test=take(self.x_test, kept_test),
            y_test=test[kept_test],
            classes=tuple(classes),
            texts=_texts(self.texts, kept_train, kept_test),
        )

    def class_index(self, name: str) -> int:
        """The label of the class ``name``."""
        if name not in self.classes:
            raise unknown(f"class of {self.name}", name, self.classes)
        return self.classes.index(name)

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.x_train.shape[1:]))
        return (
            f"DataSet({self.name!r}: {self.domain}, {len(self.x_train):,} train / "
            f"{len(self.x_test):,} test, {shape} {str(self.x_train.dtype).removeprefix('torch.')}, "
            f"{self.num_classes} classes)"
        )


def _texts(texts: Texts | None, train: Tensor, test: Tensor) -> Texts | None:
    """The texts of the kept samples."""
    if texts is None:
        return None
    first, second = texts
    return tuple(first[i] for i in train.tolist()), tuple(second[i] for i in test.tolist())


def _draw(labels: Tensor, count: int | None, seed: int, part: str, least: int) -> Tensor:
    if count is None:
        return torch.arange(len(labels))
    count = whole(part, count, least=0)
    if not least <= count <= len(labels):
        raise TstarError(
            f"{part} must be between {least} and {len(labels)}, the samples there are, "
            f"but got {part}={count}."
        )
    # Every class keeps one sample where that many are asked for; the rest is in proportion.
    _, kept = stratified(labels, count, seed, keep=0, least=1 if part == "train" else 0)
    return kept
