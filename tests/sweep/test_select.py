"""Expressions that choose runs."""

import pytest

from tstar.errors import TstarError
from tstar.sweep.select import selector

ROW = {
    "model": "vgg9",
    "lr": 0.1,
    "seed": 3,
    "csg": None,
    "studies": '{"mine": "ab"}',
    "test_metric": 0.75,
}


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        ('model == "vgg9" and lr == 0.1', True),
        ('model == "vgg9" and not lr == 0.1', False),
        ('model in ("mlp", "vgg9")', True),
        ('model not in ["mlp", "vgg9"]', False),
        ("0.01 < lr <= 0.1", True),
        ("lr > 0.1 or seed == 3", True),
        ("csg > 1", False),
        ("csg == None", True),
        ("lr > -1", True),
        ("test_metric > 0.5", True),
        ("val_metric > 0.5", False),
    ],
)
def test_columns_are_compared_with_values(where, chosen):
    assert selector(where)(ROW) is chosen


def test_a_study_chooses_its_own_runs():
    assert selector(study="mine")(ROW)
    assert not selector(study="other")(ROW)
    assert not selector(study="mine")({**ROW, "studies": None})
    assert not selector("lr == 5", "mine")(ROW)


@pytest.mark.parametrize(
    "where",
    [
        "lr = 1",
        "",
        "__import__('os').system('x')",
        "lr + 1 == 2",
        "(lambda: 1)()",
        "lr.real",
        "[x for x in lr]",
        "(",
    ],
)
def test_nothing_else_is_evaluated(where):
    with pytest.raises(TstarError, match="must compare columns"):
        selector(where)


def test_unknown_columns_are_named():
    with pytest.raises(TstarError, match="did you mean 'model'"):
        selector('modle == "x"')
