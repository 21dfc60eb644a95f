"""The digits that come with the package."""

import numpy as np
import pytest

from tstar.lab.data import load


def test_digits_are_scikit_learns():
    datasets = pytest.importorskip("sklearn.datasets")
    data = load("digits")
    assert (data.domain, data.num_classes, data.in_channels) == ("image", 10, 1)
    assert data.x_train.shape == (1438, 1, 8, 8)
    assert data.x_train.max() == 255
    found = np.concatenate([data.x_train.numpy(), data.x_test.numpy()])[:, 0].reshape(-1, 64)
    labels = np.concatenate([data.y_train.numpy(), data.y_test.numpy()])
    bunch = datasets.load_digits()
    gray = np.round(found / (255 / 16))
    assert sorted(map(tuple, np.column_stack([gray, labels]))) == sorted(
        map(tuple, np.column_stack([bunch.data, bunch.target]))
    )
    share = data.y_test.bincount() / (data.y_test.bincount() + data.y_train.bincount())
    assert (share - 0.2).abs().max() < 0.01


def test_digits_are_the_same_every_time_and_can_be_resized():
    assert load("digits").checksum() == load("Digits", size=8).checksum()
    assert load("digits", size=16).x_train.shape == (1438, 1, 16, 16)
