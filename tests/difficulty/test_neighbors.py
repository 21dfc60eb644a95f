"""Every route, block size and number of threads finds what brute force finds."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tstar.difficulty.neighbors import nearest
from tstar.difficulty.neighbors.device import nearest_on_device
from tstar.difficulty.neighbors.scores import _by_rows, padded
from tstar.difficulty.neighbors.sketch import (
    Sketch,
    frame_of,
    principal_directions,
    sketch,
)

rng = np.random.default_rng(0)
_MOTIF = rng.normal(128, 40, (30, 3, 16, 16)).repeat(2, axis=2).repeat(2, axis=3)
_MOTIF = np.clip(_MOTIF.repeat(10, axis=0) + rng.normal(0, 9, (300, 3, 32, 32)), 0, 255)
SETS = {
    "pictures": _MOTIF.astype(np.uint8).reshape(300, -1),
    "pictures, channels last": _MOTIF.astype(np.uint8).transpose(0, 2, 3, 1).reshape(300, -1),
    "noise": rng.integers(0, 256, (400, 300), dtype=np.uint8),
    "black and white": 255 * rng.integers(0, 2, (300, 700), dtype=np.uint8),
    "many ties": rng.integers(0, 2, (300, 80), dtype=np.uint8),
    "duplicates": np.repeat(rng.integers(0, 256, (60, 200), dtype=np.uint8), 5, axis=0),
    "constant": np.full((200, 90), 7, np.uint8),
    "few rows": rng.integers(0, 256, (8, 3000), dtype=np.uint8),
    "float32 far from zero": (rng.normal(size=(300, 150)) + 1000).astype(np.float32),
    "float64": rng.normal(size=(300, 100)),
    "one dimension": rng.normal(size=(60, 1)),
    "huge": 1e90 * rng.normal(size=(200, 80)),
    "tiny": 1e-90 * rng.normal(size=(200, 80)),
    "one outlier": np.vstack([rng.normal(size=(200, 80)), 1e9 * rng.normal(size=(2, 80))]),
    "low rank": rng.normal(size=(300, 3)) @ rng.normal(size=(3, 120)),
}


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


@pytest.mark.parametrize("name", [name for name, data in SETS.items() if data.dtype == np.uint8])
def test_the_device_route_agrees(name):
    data = SETS[name]
    queries = np.arange(0, len(data), 5)
    np.testing.assert_array_equal(
        nearest_on_device(torch.from_numpy(data), queries, 4, block=9), nearest(data, queries, 4)
    )


def test_products_beyond_float32s_whole_numbers_are_still_ranked_exactly(helpers):
    # distances near 2e8 that differ by 1: a float32 product cannot tell them apart
    base = np.zeros(3072, np.uint8)
    far = np.full((40, 3072), 255, np.uint8)
    far[np.arange(40), np.arange(40)] -= np.random.default_rng(0).permutation(40).astype(np.uint8)
    data = np.vstack([base, far])
    for route in "whole", "sketch", "int8":
        np.testing.assert_array_equal(
            nearest(data, np.array([0]), 6, route=route),
            helpers.brute_neighbors(data, [0], 6),
        )


def test_all_other_rows_can_be_neighbors(helpers):
    data = SETS["float64"][:20]
    np.testing.assert_array_equal(
        nearest(data, np.arange(20), 19), helpers.brute_neighbors(data, range(20), 19)
    )


def test_rows_that_are_displaced_by_their_slack_are_not_ruled_out():
    """Two points at distance 1, each moved 0.01 away from the other: the threshold must allow for it."""
    made = np.array([[-0.01, 0.0], [1.01, 0.0]], np.float32)
    score, threshold = _by_rows(Sketch(made, 0.01), 1.0)
    scores = np.empty((1, padded(2)), np.float32)
    score(np.array([0]), scores)
    assert scores[0, 1] <= threshold(0, 1.0)
    assert scores[0, 1] > threshold(0, 0.9)  # and what is ruled out can be
    assert (scores[0, 2:] > 1e30).all()


def test_pictures_are_told_from_other_rows():
    assert frame_of(SETS["pictures"]).picture == (3, 32, 1)
    assert frame_of(SETS["pictures, channels last"]).picture == (1, 32, 3)
    assert frame_of(rng.integers(0, 256, (300, 3072), dtype=np.uint8)).picture is None
    gray = SETS["pictures"][:, :1024]
    assert frame_of(gray).picture == (1, 32, 1)


def test_reduced_pictures_are_projections():
    frame = frame_of(SETS["pictures"])
    wide = frame.place(SETS["pictures"]).reshape(300, 3, 16, 2, 16, 2)
    np.testing.assert_array_equal(
        frame.reduced(SETS["pictures"]), wide.sum(axis=(3, 5)).reshape(300, -1) / 2
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([np.uint8, np.float32, np.float64]))
def test_sketches_never_exceed_the_true_distance_by_more_than_their_slack(seed, dtype):
    own = np.random.default_rng(seed)
    shape = own.normal(size=(6, 200)) * own.exponential(size=(6, 1)) * 40
    data = own.normal(size=(150, 6)) @ shape + own.normal(size=(150, 200)) * own.exponential()
    data = np.clip(data + 128, 0, 255).astype(dtype) if dtype == np.uint8 else data.astype(dtype)
    check_sketch(data)


@pytest.mark.parametrize("name", ["pictures", "pictures, channels last", "black and white"])
def test_so_do_sketches_of_pictures(name):
    check_sketch(SETS[name])


def check_sketch(data):
    frame = frame_of(data)
    lengths = (data.astype(np.int64) ** 2).sum(axis=1) if data.dtype == np.uint8 else None
    made = sketch(data, frame, principal_directions(frame.reduced(data), 32), lengths)
    wide, rows = data.astype(np.float64), made.rows.astype(np.float64)
    for q in range(0, len(data), 15):
        true = np.sqrt(((wide - wide[q]) ** 2).sum(axis=1)) * frame.scale
        bound = np.sqrt(((rows - rows[q]) ** 2).sum(axis=1))
        assert (bound <= true + 2 * made.slack + 1e-12).all()
        assert made.slack < 1e-2 * np.median(true)  # and the slack is small enough to be of use
