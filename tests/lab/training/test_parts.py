"""A data set made ready for one run."""

import pytest
import torch

from tstar.errors import TstarError
from tstar.lab.data import split
from tstar.lab.training import Config
from tstar.lab.training.parts import make_parts, pick_device

SHORT = Config(epochs=1, batch_size=64, lr=0.05)


def test_samples_are_read_where_they_lie(data):
    """A batch of the parts is the batch of a copy, and nothing is copied."""
    parts = make_parts(data, SHORT, 0)
    train, val = split(data, 0.1, 0)
    rows = torch.tensor([5, 0, 7])
    assert torch.equal(parts.x[rows], data.x_train[train][rows])
    assert torch.equal(parts.x_val[:4], data.x_train[val][:4])
    assert parts.x._x.data_ptr() == data.x_train.data_ptr()
    assert torch.equal(parts.x_test[:], data.x_test)


def test_a_device_that_is_not_there_is_an_error():
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(TstarError, match="no device 'cuda'"):
        pick_device("cuda")
