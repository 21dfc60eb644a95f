"""Data sets from arrays and functions of your own."""

import numpy as np
import pytest
import torch

from tstar.data.yours import from_arrays, from_function
from tstar.errors import TstarError

Y = np.arange(6) % 3
SOURCE = """
import numpy as np

def sized(root, size):
    x = np.zeros((6, size or 8, size or 8, 3), dtype=np.uint8)
    y = np.arange(6) % 3
    return x, y, x, y

def plain(root):
    return sized(root, 4)
"""


@pytest.fixture
def part(tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE, encoding="utf-8")
    return lambda name: f"{tmp_path / 'mine.py'}:{name}"


def test_arrays_and_tensors_are_the_same_data():
    x = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)
    arrays = from_arrays("mine", (x, Y, x, Y))
    tensor = torch.from_numpy(x).permute(0, 3, 1, 2)
    tensors = from_arrays("mine", (tensor, torch.from_numpy(Y), tensor, torch.from_numpy(Y)))
    assert arrays.checksum() == tensors.checksum()
    assert (arrays.domain, arrays.num_classes) == ("image", 3)
    assert from_arrays("other", arrays) is arrays


def test_a_function_is_asked_for_a_size_only_if_it_takes_one(part, tmp_path):
    assert from_function(part("sized"), tmp_path, 16).x_train.shape == (6, 3, 16, 16)
    assert from_function(part("plain"), tmp_path, None).x_train.shape == (6, 3, 4, 4)
    with pytest.raises(TstarError, match="takes no size"):
        from_function(part("plain"), tmp_path, 16)


def test_what_is_no_data_set_is_said():
    with pytest.raises(TstarError, match="must give x_train, y_train, x_test and y_test"):
        from_arrays("mine", (1, 2, 3))
    vectors, images = np.zeros((6, 4), np.float32), np.zeros((6, 4, 4, 3), np.uint8)
    with pytest.raises(TstarError, match="of one kind, but got vector and image"):
        from_arrays("mine", (vectors, Y, images, Y))
