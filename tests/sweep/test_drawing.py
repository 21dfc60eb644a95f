"""Smaller and noisier tasks from a data set: seeded, labels in order, the test part untouched by noise."""

import pytest
import torch

from tstar.data import load
from tstar.errors import TstarError
from tstar.sweep.execute import DataKey, draw, load_data


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def test_a_subset_of_classes_is_numbered_anew(digits):
    few = draw(digits, 4, None, 0.0, seed=1)
    assert few.num_classes == 4
    assert set(few.y_train.tolist()) == set(few.y_test.tolist()) == {0, 1, 2, 3}
    assert set(few.classes) < set(digits.classes)
    assert draw(digits, 4, None, 0.0, seed=1).checksum() == few.checksum()
    assert draw(digits, 4, None, 0.0, seed=2).classes != few.classes


def test_samples_are_drawn_in_proportion(digits):
    few = draw(digits, None, 100, 0.0, seed=0)
    assert len(few.y_train) == 100
    assert len(few.y_test) == len(digits.y_test)
    counts = torch.bincount(few.y_train)
    assert counts.min() >= 9
    assert counts.max() <= 11


def test_noise_changes_a_share_of_training_labels_and_no_test_label(digits):
    noisy = draw(digits, None, None, 0.3, seed=0)
    changed = (noisy.y_train != digits.y_train).double().mean().item()
    # A wrong label is never the true one. Binomial: 1,438 labels, s.d. 0.012.
    assert changed == pytest.approx(0.3, abs=0.05)
    assert torch.equal(noisy.y_test, digits.y_test)
    assert torch.equal(noisy.x_train, digits.x_train)


def test_too_many_classes_are_refused(digits):
    with pytest.raises(TstarError, match="between 2 and 10"):
        draw(digits, 11, None, 0.0, seed=0)


def test_the_key_draws_what_it_says(digits):
    key = DataKey("digits", classes=3, train_samples=60, data_seed=5)
    assert load_data(key, None).checksum() == draw(digits, 3, 60, 0.0, seed=5).checksum()
