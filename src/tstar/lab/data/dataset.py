"""A data set: two parts, labels 0…K−1, the names of its classes; seeded, stratified parts of it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from tstar.errors import TstarError, share, unknown, whole

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
ARRAYS = ("x_train", "y_train", "x_test", "y_test")
_TOGETHER = 1024  # samples looked at together
TEST_FRACTION = 0.2  # of data sets without an official test part
TEST_SEED = 0


@dataclass(frozen=True, eq=False)
class DataSet:
    """Arrays of a classification task.

    ``x_*`` are images (uint8, N×C×H×W), signals (float32, N×C×L), vectors (float32, N×D; also
    those of text) or token ids (int64, N×L). ``y_*`` are int64 labels 0…K−1, each of which occurs
    in the training part. ``texts`` are the texts themselves, (training, test), if there are such.
    """

    name: str
    domain: Domain
    x_train: Tensor
    y_train: Tensor
    x_test: Tensor
    y_test: Tensor
    classes: tuple[str, ...]
    texts: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    def __post_init__(self) -> None:
        if self.domain not in DOMAINS:
            raise unknown("domain", self.domain, DOMAINS)
        self._check_samples("train", self.x_train, self.y_train)
        self._check_samples("test", self.x_test, self.y_test)
        if self.x_train.shape[1:] != self.x_test.shape[1:]:
            shapes = " and ".join(str(tuple(x.shape[1:])) for x in (self.x_train, self.x_test))
            size = "; pass size= to bring them to one" if self.domain == "image" else ""
            raise self._error(f"samples of one shape in both parts, but got {shapes}{size}")
        K, present = len(self.classes), torch.unique(self.y_train).tolist()
        if K < 2 or len(set(self.classes)) != K:
            raise self._error(f"at least two classes, each with a name of its own, but got {K}")
        if present != list(range(K)):
            raise self._error(
                f"labels 0…{K - 1} without gaps, but the training part has "
                f"{', '.join(map(str, present[:5]))}{', …' * (len(present) > 5)}; renumber them, "
                "e.g. with numpy.unique(y, return_inverse=True)"
            )
        strange = sorted(set(torch.unique(self.y_test).tolist()) - set(present))
        if strange:
            raise self._error(f"test labels of its training part, but label {strange[0]} is new")

    def _check_samples(self, part: str, x: Tensor, y: Tensor) -> None:
        shape, dimensions, dtype = DOMAINS[self.domain]
        fine = x.ndim == dimensions and x.dtype == dtype and x.numel() > 0
        if not fine or y.ndim != 1 or y.dtype != torch.int64 or len(x) != len(y):
            raise self._error(
                f"x_{part} ({self.domain}) of {shape} and {dtype}, with one int64 label per "
                f"sample, but got {tuple(x.shape)} of {x.dtype} with {tuple(y.shape)} labels"
            )
        for start in range(0, len(x) if dtype.is_floating_point else 0, _TOGETHER):
            finite = torch.isfinite(x[start : start + _TOGETHER]).flatten(1).all(1)
            if not bool(finite.all()):
                row = start + int((~finite).nonzero()[0])
                raise self._error(f"finite samples, but sample {row} of x_{part} holds NaN or ∞")

    def _error(self, must: str) -> TstarError:
        return TstarError(f"{self.name} must have {must}.")

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.classes)

    @property
    def in_channels(self) -> int:
        """C of images and signals, D of vectors: what :func:`tstar.lab.models.build` asks for."""
        return int(self.x_train.shape[1])

    def checksum(self) -> str:
        """SHA-256 over the four arrays (dtype, shape, values) in hexadecimal, computed once.

        Names are left out, so that a renamed copy is recognized as the same data.
        """
        return self._checksum

    @cached_property
    def _checksum(self) -> str:
        digest = hashlib.sha256()
        for field in ARRAYS:
            values = getattr(self, field)
            for start in range(0, len(values), _TOGETHER):
                array: Any = values[start : start + _TOGETHER].contiguous().numpy()
                array = array.astype(array.dtype.newbyteorder("<"), copy=False)
                if start == 0:
                    digest.update(f"{field} {array.dtype.str} {tuple(values.shape)}\n".encode())
                digest.update(memoryview(array).cast("B"))
        return digest.hexdigest()

    def subset(
        self, train: int | None = None, test: int | None = None, *, seed: int = 0
    ) -> DataSet:
        """``train`` and ``test`` samples of the two parts, drawn in proportion to the classes.

        ``None`` keeps a part whole. At least one training sample of each class must fit.
        """
        first = _draw(self.y_train, train, seed, "train", self.num_classes)
        second = _draw(self.y_test, test, seed, "test", 1)
        return self._taken((first, second), self.y_train[first], self.y_test[second])

    def regroup(
        self, groups: Sequence[Sequence[int]], classes: Sequence[str], name: str
    ) -> DataSet:
        """A new task: old labels ``groups[i]`` become label i, named ``classes[i]``.

        The rest is dropped. Groups of one label choose classes; larger ones merge them.
        """
        table = torch.full((self.num_classes,), -1, dtype=torch.int64)
        for new, group in enumerate(groups):
            table[list(group)] = new
        train, test = table[self.y_train], table[self.y_test]
        first, second = ((new >= 0).nonzero()[:, 0] for new in (train, test))
        named = {"name": name, "classes": tuple(classes)}
        return self._taken((first, second), train[first], test[second], **named)

    def _taken(
        self, kept: tuple[Tensor, Tensor], y_train: Tensor, y_test: Tensor, **changed: Any
    ) -> DataSet:
        """The samples at these rows, with these labels."""
        if self.texts is not None:
            both = zip(self.texts, kept, strict=True)
            changed["texts"] = tuple(tuple(part[i] for i in rows) for part, rows in both)
        x_train, x_test = self.x_train[kept[0]], self.x_test[kept[1]]
        changed |= {"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": y_test}
        return replace(self, **changed)

    def __repr__(self) -> str:
        shape = "×".join(map(str, self.x_train.shape[1:]))
        return (
            f"DataSet({self.name!r}: {self.domain}, {len(self.x_train):,} train / "
            f"{len(self.x_test):,} test, {shape} {str(self.x_train.dtype).removeprefix('torch.')}, "
            f"{self.num_classes} classes)"
        )


def _draw(labels: Tensor, count: int | None, seed: int, part: str, least: int) -> Tensor:
    if count is None:
        return torch.arange(len(labels))
    count = whole(part, count, least=least, most=len(labels))
    # Every class keeps one sample if that many are asked for; the rest is in proportion.
    return stratified(labels, count, seed, keep=0, least=int(part == "train"))[1]


def split(dataset: DataSet | Tensor, val_fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Indices of the training and of the validation samples of a data set's training part.

    Stratified: each class gives its share of round(N·val_fraction) samples, and keeps at least one.
    Depends on the labels, the fraction and ``seed`` only. Both are ascending int64; with
    ``val_fraction=0`` the second is empty. A tensor of labels is taken as well.
    """
    labels = dataset if isinstance(dataset, Tensor) else dataset.y_train
    return stratified(labels, round(len(labels) * share("val_fraction", val_fraction)), seed)


def test_rows(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Indices of the training and of the test samples of data without an official test part."""
    return stratified(labels, round(len(labels) * TEST_FRACTION), TEST_SEED)


def divided(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x_train, y_train, x_test and y_test of data without an official test part."""
    train, test = test_rows(y)
    return x[train], y[train], x[test], y[test]


def stratified(
    labels: Tensor, count: int, seed: int, *, keep: int = 1, least: int = 0
) -> tuple[Tensor, Tensor]:
    """(rest, drawn): ``count`` samples drawn in proportion to the classes, and those that remain.

    Shares are rounded by largest remainder, so that they add up to ``count``. Each class keeps at
    least ``keep`` samples in the rest (fewer than ``count`` are drawn if they must be)
    and gives at least ``least``.
    """
    y = labels.numpy()
    drawn = np.zeros(len(y), dtype=bool)
    if count > 0:
        classes, sizes = np.unique(y, return_counts=True)
        random = np.random.default_rng(whole("seed", seed, least=0)).random(len(y))
        for label, share in zip(classes, _shares(sizes, count, keep, least), strict=True):
            members = np.flatnonzero(y == label)
            drawn[members[np.argsort(random[members], kind="stable")[:share]]] = True
    return torch.from_numpy(np.flatnonzero(~drawn)), torch.from_numpy(np.flatnonzero(drawn))


def _shares(sizes: np.ndarray, count: int, keep: int, least: int) -> np.ndarray:
    """How many samples each class gives: proportional, whole, adding up to ``count``."""
    most = np.maximum(sizes - keep, 0)
    exact = sizes * (count / sizes.sum())
    shares: np.ndarray = np.clip(np.floor(exact).astype(np.int64), np.minimum(least, most), most)
    # One at a time to the class furthest below its exact share (from the one furthest above).
    while shares.sum() < min(count, most.sum()):
        shares[np.argmax(np.where(shares < most, exact - shares, -np.inf))] += 1
    while shares.sum() > count:
        shares[np.argmin(np.where(shares > least, exact - shares, np.inf))] -= 1
    return shares
