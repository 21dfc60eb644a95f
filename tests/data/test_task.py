"""Whatever a user has, as the arrays of one task."""

import itertools

import numpy as np
import pytest
import torch

from tstar.data import load
from tstar.data.task import as_task
from tstar.errors import TstarError


@pytest.fixture(scope="module")
def digits():
    return load("digits").subset(500, 100)


def test_data_in_every_form_are_the_same_task(digits):
    pairs = [(x.float() / 255, int(y)) for x, y in zip(digits.x_train, digits.y_train, strict=True)]
    arrays = (digits.x_train.float().numpy() / 255, digits.y_train.numpy())
    tasks = [
        as_task(pairs),
        as_task(arrays),
        as_task((digits.x_train.float() / 255, digits.y_train)),
    ]
    for task in tasks:
        assert (task.domain, task.num_classes, task.raw) == ("image", 10, False)
        assert torch.equal(task.x_train, tasks[0].x_train)
        assert torch.equal(task.y_test, tasks[0].y_test)
        assert len(task.y_train) + len(task.y_test) == 500
    assert as_task((digits.x_train, digits.y_train)).raw
    assert as_task(digits).x_test is digits.x_test
    assert as_task("digits").name == "digits"
    words = as_task((np.random.default_rng(0).random((20, 3)), np.array(["a", "b"] * 10)))
    assert (words.domain, words.num_classes) == ("vector", 2)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (42, "data must be"),
        ([(torch.zeros(1, 8, 8), "cat")], "two classes"),
        ([torch.zeros(3)], "pair"),
        ([(torch.zeros(3), 0), (torch.zeros(4), 1)], "one shape"),
        ((torch.zeros(5), torch.zeros(5)), "one row per sample"),
        ((torch.zeros(5, 2), torch.zeros(4)), "5 samples and 4 labels"),
        ((torch.full((4, 2), torch.nan), torch.arange(4)), "finite"),
        ((torch.zeros(4, 2), torch.zeros(4)), "two classes"),
    ],
)
def test_bad_data_are_refused(data, message):
    with pytest.raises(TstarError, match=message):
        as_task(data)


def test_of_a_stream_that_never_ends_a_part_is_read(monkeypatch):
    monkeypatch.setattr("tstar.data.task._MOST", 40)
    task = as_task((np.full(3, i % 2, np.float32), i % 2) for i in itertools.count())
    assert len(task.y_train) + len(task.y_test) == 40
