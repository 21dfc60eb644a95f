"""The one search finds what brute force finds, and its bounds hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.csg_data import SETS, brute_neighbors
from tstar import neighbors
from tstar.neighbors import Bounds, Vectors, nearest


@pytest.fixture(params=[8, 160])
def directions(request, monkeypatch):
    """Few of them: sketches are then tried on rows that are short."""
    monkeypatch.setattr(neighbors, "_DIRECTIONS", request.param)


@pytest.mark.parametrize("sketched", [True, False])
@pytest.mark.parametrize("name", SETS)
def test_neighbors_are_those_of_brute_force(name, sketched, directions):
    data = SETS[name]
    queries = np.random.default_rng(1).permutation(len(data))[:50]
    expected = brute_neighbors(data, queries, 5)
    np.testing.assert_array_equal(nearest(data, queries, 5, sketched=sketched), expected)


@pytest.mark.parametrize("numbers", ["_SCORES", "_TILE", "_GATHERED"])
def test_how_much_is_done_at_a_time_changes_nothing(numbers, monkeypatch):
    data, queries = SETS["pictures"], np.arange(0, 300, 3)
    expected = nearest(data, queries, 5)
    monkeypatch.setattr(neighbors, numbers, 4000)
    np.testing.assert_array_equal(nearest(data, queries, 5), expected)


@pytest.mark.parametrize(("name", "given_up"), [("pictures", False), ("noise", True)])
def test_sketches_that_rule_out_too_little_are_given_up(monkeypatch, name, given_up):
    tried = []
    monkeypatch.setattr(neighbors, "_DIRECTIONS", 32)
    monkeypatch.setattr(
        neighbors, "Bounds", lambda rows, sketched: tried.append(sketched) or Bounds(rows, sketched)
    )
    monkeypatch.setattr(neighbors, "_FUTILE", 0.2)
    nearest(SETS[name], np.arange(40), 5)
    assert tried == ([True, False] if given_up else [True])


def test_all_other_rows_can_be_neighbors():
    data = SETS["float64"][:20]
    np.testing.assert_array_equal(
        nearest(data, np.arange(20), 19), brute_neighbors(data, range(20), 19)
    )


@pytest.mark.parametrize("sketched", [True, False])
def test_products_beyond_float32s_whole_numbers_are_still_ranked_exactly(sketched):
    # distances near 2e8 that differ by 1: a float32 product cannot tell them apart
    far = np.full((40, 3072), 255, np.uint8)
    far[np.arange(40), np.arange(40)] -= np.random.default_rng(0).permutation(40).astype(np.uint8)
    data = np.vstack([np.zeros(3072, np.uint8), far])
    found = nearest(data, np.array([0]), 6, sketched=sketched)
    np.testing.assert_array_equal(found, brute_neighbors(data, [0], 6))


@pytest.mark.parametrize("width", [3, 600, 2100])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float32, np.float64])
def test_distances_are_those_by_hand(dtype, width, monkeypatch):
    monkeypatch.setattr(neighbors, "_GATHERED", 20_000)
    data = np.random.default_rng(0).integers(0, 120, (70, width)).astype(dtype)
    wide, rows = data.astype(np.int64), Vectors(data)
    scale = 1.0 if rows.bytes else rows.scale
    for q in (3, 8):
        expected = ((wide - wide[q]) ** 2).sum(axis=1) * scale**2
        np.testing.assert_array_equal(rows.distances(q, np.arange(70)), expected)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([np.uint8, np.float32, np.float64]))
def test_no_row_within_a_distance_has_a_larger_score(seed, dtype):
    own = np.random.default_rng(seed)
    shape = own.normal(size=(6, 400)) * own.exponential(size=(6, 1)) * 40
    data = own.normal(size=(300, 6)) @ shape + own.normal(size=(300, 400)) * own.exponential()
    data = np.clip(data + 128, 0, 255).astype(dtype) if dtype == np.uint8 else data.astype(dtype)
    _check_bounds(data)


@pytest.mark.parametrize("name", ["pictures", "black and white", "float32 far from zero"])
def test_so_for_other_rows(name, monkeypatch):
    monkeypatch.setattr(neighbors, "_DIRECTIONS", 40)
    _check_bounds(SETS[name])


def _check_bounds(data):
    rows, queries = Vectors(data), np.arange(0, len(data), 15)
    for sketched in (True, False):
        bounds, loose = Bounds(rows, sketched), 0.0
        scores = np.empty((len(queries), len(data)), np.float32)
        bounds.score(queries, scores)
        columns = range(0, len(data), 7)
        for column in columns:
            squares = np.array([rows.distances(q, np.array([column]))[0] for q in queries])
            limits = bounds.limits(queries, np.sqrt(squares))
            other = queries != column
            assert (scores[other, column] <= limits[other]).all()
            own = rows.squares[queries]
            loose += ((limits - scores[:, column]) / (squares + own))[other].sum() / len(columns)
        assert loose / len(queries) < 0.7  # an infinite limit would hold as well
