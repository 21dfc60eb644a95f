"""The one search finds what brute force finds, and its bounds hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.csg_data import SETS, brute_neighbors
from tstar import neighbors
from tstar.neighbors import Bounds, Frame, halving_sum, nearest, sketch


@pytest.mark.parametrize("sketched", [True, False])
@pytest.mark.parametrize("name", SETS)
def test_neighbors_are_those_of_brute_force(name, sketched):
    data = SETS[name]
    queries = np.random.default_rng(1).permutation(len(data))[:50]
    expected = brute_neighbors(data, queries, 5)
    np.testing.assert_array_equal(nearest(data, queries, 5, sketched=sketched), expected)


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_the_block_size_changes_nothing(block):
    data, queries = SETS["noise"], np.arange(0, 400, 3)
    np.testing.assert_array_equal(nearest(data, queries, 5, block=block), nearest(data, queries, 5))


def test_many_ties_are_ranked_a_few_queries_at_a_time(monkeypatch):
    monkeypatch.setattr(neighbors, "_MOST", 300)
    data = SETS["many ties"]
    np.testing.assert_array_equal(
        nearest(data, np.arange(60), 5), brute_neighbors(data, range(60), 5)
    )


@pytest.mark.parametrize(("name", "given_up"), [("pictures", False), ("noise", True)])
def test_sketches_that_rule_out_too_little_are_given_up(monkeypatch, name, given_up):
    used = []
    made = neighbors.whole_rows
    monkeypatch.setattr(neighbors, "whole_rows", lambda frame: used.append(1) or made(frame))
    nearest(SETS[name], np.arange(40), 5)
    assert bool(used) is given_up


def test_all_other_rows_can_be_neighbors():
    data = SETS["float64"][:20]
    np.testing.assert_array_equal(
        nearest(data, np.arange(20), 19), brute_neighbors(data, range(20), 19)
    )


def test_products_beyond_float32s_whole_numbers_are_still_ranked_exactly():
    # distances near 2e8 that differ by 1: a float32 product cannot tell them apart
    far = np.full((40, 3072), 255, np.uint8)
    far[np.arange(40), np.arange(40)] -= np.random.default_rng(0).permutation(40).astype(np.uint8)
    data = np.vstack([np.zeros(3072, np.uint8), far])
    for sketched in True, False:
        np.testing.assert_array_equal(
            nearest(data, np.array([0]), 6, sketched=sketched), brute_neighbors(data, [0], 6)
        )


@pytest.mark.parametrize("width", [3, 600, 2100])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float32, np.float64])
def test_distances_are_those_by_hand(dtype, width):
    data = np.random.default_rng(0).integers(0, 120, (70, width)).astype(dtype)
    queries = np.array([3, 60, 8])
    who, rows = np.repeat([0, 2], 70), np.tile(np.arange(70), 2)  # the second has none
    wide = data.astype(np.int64)
    np.testing.assert_array_equal(
        Frame(data).distances(queries, who, rows),
        np.concatenate([((wide - wide[q]) ** 2).sum(axis=1) for q in (3, 8)]),
    )


def test_a_sum_by_halves_is_the_sum():
    for width in (1, 2, 5, 64, 100):
        values = np.random.default_rng(width).normal(size=(3, width))
        np.testing.assert_allclose(halving_sum(values.copy()), values.sum(axis=1), rtol=1e-12)


def test_rows_that_are_displaced_by_their_slack_are_not_ruled_out():
    """Two points at distance 1, each moved 0.01 away from the other: the limit must allow for it."""
    squares = np.array([0.0001, 1.0201])
    made = np.array([[-0.01, 0.0, 0.0001], [1.01, 0.0, 1.0201]], np.float32)
    bounds = Bounds(made.__getitem__, squares, 2, 0.01, 1.0, sketched=True)
    scores = np.empty((1, 16), np.float32)
    query = np.array([0])
    bounds.scores(query, scores)
    assert scores[0, 1] <= bounds.most(query, np.array([1.0]))[0]
    assert scores[0, 1] > bounds.most(query, np.array([0.9]))[0]  # and what is ruled out can be
    assert (scores[0, 2:] > 1e30).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([np.uint8, np.float32, np.float64]))
def test_sketches_never_exceed_the_true_distance_by_more_than_their_slack(seed, dtype):
    own = np.random.default_rng(seed)
    shape = own.normal(size=(6, 200)) * own.exponential(size=(6, 1)) * 40
    data = own.normal(size=(150, 6)) @ shape + own.normal(size=(150, 200)) * own.exponential()
    data = np.clip(data + 128, 0, 255).astype(dtype) if dtype == np.uint8 else data.astype(dtype)
    _check_sketch(data)


@pytest.mark.parametrize(
    "name", ["pictures", "black and white", "low rank", "float32 far from zero"]
)
def test_so_do_sketches_of_other_rows(name):
    _check_sketch(SETS[name])


def _check_sketch(data):
    frame = Frame(data)
    made = sketch(frame)
    wide, rows = data.astype(np.float64), made.vectors(slice(None))[:, :-1].astype(np.float64)
    tight = []
    for q in range(0, len(data), 15):
        true = np.sqrt(((wide - wide[q]) ** 2).sum(axis=1)) * frame.scale
        bound = np.sqrt(((rows - rows[q]) ** 2).sum(axis=1))
        assert (bound <= true * (1 + 1e-9) + 2 * made.slack).all()
        tight.append(bound.sum() / true.sum())
    assert np.mean(tight) > 0.3  # a bound of 0 would hold as well
