"""Which route is taken; all of them find the same neighbors."""

import numpy as np
import pytest

from tests.difficulty.neighbors.sets import SETS
from tstar.difficulty.neighbors import plan
from tstar.difficulty.neighbors.plan import SHORT, make_plan


def test_rows_with_few_directions_are_sketched_and_noise_is_not():
    low_rank = np.random.default_rng(0).normal(size=(3000, 3)) @ np.ones((3, 400))
    low_rank = low_rank + 1e-3 * np.random.default_rng(1).normal(size=low_rank.shape)
    assert make_plan(low_rank, 1000, 5).directions is not None
    assert make_plan(SETS["noise"], 400, 5).directions is None


def test_short_rows_and_equal_rows_are_never_sketched():
    assert make_plan(SETS["one dimension"], 60, 5, "sketch").directions is None
    short = np.random.default_rng(0).normal(size=(300, SHORT))
    assert make_plan(short, 300, 5, "sketch").directions is None
    assert make_plan(SETS["constant"], 200, 5, "sketch").directions is None


@pytest.mark.parametrize("fast", [True, False])
def test_whole_numbers_are_multiplied_as_such_where_that_is_faster(monkeypatch, fast):
    monkeypatch.setattr(plan, "int8_is_faster", lambda: fast)
    monkeypatch.setattr(plan, "int8_is_exact", lambda: True)
    assert make_plan(SETS["noise"], 400, 5).int8 is fast
    assert make_plan(SETS["noise"], 400, 5, "int8").int8
    monkeypatch.setattr(plan, "int8_is_exact", lambda: False)  # a processor without VNNI
    assert not make_plan(SETS["noise"], 400, 5).int8
    assert not make_plan(SETS["noise"], 400, 5, "int8").int8
    monkeypatch.setattr(plan, "int8_is_exact", lambda: True)
    assert not make_plan(SETS["noise"], 400, 5, "whole").int8
    assert not make_plan(SETS["float64"], 300, 5).int8
