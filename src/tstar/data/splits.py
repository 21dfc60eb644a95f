"""Seeded, stratified parts: the held-out validation samples of a run, and test parts where a data
set has no official one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from tstar.numbers import share, whole

if TYPE_CHECKING:
    from tstar.data.dataset import DataSet

TEST_FRACTION = 0.2  # of data sets without an official test part
TEST_SEED = 0


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


def stratified(
    labels: Tensor, count: int, seed: int, *, keep: int = 1, least: int = 0
) -> tuple[Tensor, Tensor]:
    """(rest, drawn): ``count`` samples drawn in proportion to the classes, and those that remain.

    Shares are rounded by largest remainder, so that they add up to ``count``. Each class keeps at
    least ``keep`` samples in the rest (fewer than ``count`` are drawn where that leaves no choice)
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
