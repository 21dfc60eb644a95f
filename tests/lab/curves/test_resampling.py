"""Means over conditions, and their intervals by drawing data sets, conditions and seeds again."""

import numpy as np
import pytest

from tstar.lab.curves.resampling import clusters, estimate, weights


def test_sets_that_share_data_are_drawn_together():
    names = ["a_32", "b", "a_96", "c", "b+d", "d_8"]
    assert [group.tolist() for group in clusters(names)] == [[0, 2], [3], [1, 4, 5]]


def test_weights_draw_as_many_conditions_as_their_sets_have():
    names = ["a", "a", "a", "b", "c"]
    counts = weights(names, np.random.default_rng(0), 4000)
    assert set(counts[:, :3].sum(1)) <= {0, 3, 6, 9}  # a set drawn t times draws its three 3t times
    assert counts.mean(0) == pytest.approx([1.0] * 5, abs=0.1)
    alone = weights(["a", "a", "b"], np.random.default_rng(0), 500)
    assert (alone.sum(1) == 3).all()  # fewer than three sets: conditions alone


def test_one_condition_one_vote_and_the_interval_covers_the_seeds():
    found = estimate(
        [np.array([1.0, 3.0]), np.array([5.0]), np.array([6.0])], ["a", "b", "c"], seed=1
    )
    assert found.value == pytest.approx((2 + 5 + 6) / 3)
    assert found.low < found.value < found.high
    sure = estimate([np.array([2.0])] * 3, ["a", "b", "c"])
    assert (sure.low, sure.high) == (2.0, 2.0)
    apart = estimate([*np.linspace(0, 1, 300)[:, None]], [f"set{i}" for i in range(300)])
    expected = 1.96 * np.linspace(0, 1, 300).std() / np.sqrt(300)
    assert (apart.high - apart.low) / 2 == pytest.approx(expected, rel=0.5)


def test_the_same_seed_gives_the_same_interval():
    values, names = [*np.linspace(0, 1, 12)[:, None]], [f"set{i}" for i in range(12)]
    assert estimate(values, names) == estimate(values, names, seed=0)
    assert estimate(values, names) != estimate(values, names, seed=1)
