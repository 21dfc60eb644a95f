"""Every route, block size and number of threads finds what brute force finds."""

import numpy as np
import pytest

from tests.difficulty.neighbors.sets import SETS
from tstar.difficulty.neighbors import nearest


@pytest.mark.parametrize("route", [None, "sketch", "whole", "int8"])
@pytest.mark.parametrize("name", SETS)
def test_neighbors_are_those_of_brute_force(name, route, helpers):
    data = SETS[name]
    queries = np.random.default_rng(1).permutation(len(data))[:50]
    expected = helpers.brute_neighbors(data, queries, 5)
    np.testing.assert_array_equal(nearest(data, queries, 5, route=route), expected)


@pytest.mark.parametrize(("block", "threads"), [(1, 1), (7, 2), (64, 1), (1000, 3)])
def test_block_size_and_threads_change_nothing(block, threads, helpers):
    data = SETS["noise"]
    queries = np.arange(0, 400, 3)
    expected = nearest(data, queries, 5)
    np.testing.assert_array_equal(nearest(data, queries, 5, block=block, threads=threads), expected)


def test_all_other_rows_can_be_neighbors(helpers):
    data = SETS["float64"][:20]
    np.testing.assert_array_equal(
        nearest(data, np.arange(20), 19), helpers.brute_neighbors(data, range(20), 19)
    )
