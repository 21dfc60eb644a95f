"""Short sketches of long rows, which never exceed the true distance by more than their slack."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.difficulty.neighbors.sets import SETS, rng
from tstar.difficulty.neighbors.sketch import (
    frame_of,
    principal_directions,
    sketch,
)


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
    lengths = ((data.astype(np.int64) - 128) ** 2).sum(axis=1) if data.dtype == np.uint8 else None
    made = sketch(data, frame, principal_directions(frame.reduced(data), 32), lengths)
    wide, rows = data.astype(np.float64), made.rows.astype(np.float64)
    for q in range(0, len(data), 15):
        true = np.sqrt(((wide - wide[q]) ** 2).sum(axis=1)) * frame.scale
        bound = np.sqrt(((rows - rows[q]) ** 2).sum(axis=1))
        assert (bound <= true + 2 * made.slack + 1e-12).all()
        assert made.slack < 1e-2 * np.median(true)  # and the slack is small enough to be of use
