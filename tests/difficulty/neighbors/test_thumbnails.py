"""Small pictures whose distances never exceed those of the pictures."""

import numpy as np
import pytest

from tests.difficulty.neighbors.sets import SETS
from tstar.difficulty.neighbors.exact import int8_is_exact
from tstar.difficulty.neighbors.pairs import Pairs
from tstar.difficulty.neighbors.sketch import frame_of, principal_directions, sketch
from tstar.difficulty.neighbors.thumbnails import rest_between

# steps of one pixel in all of a picture, where the bytes lose most, and pictures that differ in details alone
_STEPS = (SETS["pictures"] // 8 + np.arange(300)[:, None] % 5).astype(np.uint8)
_CHECKERS = np.repeat(SETS["pictures"][:1], 60, axis=0)
_CHECKERS[:, ::2] ^= (np.arange(60)[:, None] % 7).astype(np.uint8)
PICTURES = {
    "pictures": SETS["pictures"],
    "channels last": SETS["pictures, channels last"],
    "steps": _STEPS,
    "details": _CHECKERS,
}


def thumbnails(data, int8=False):
    frame, wide = frame_of(data), data.astype(np.int64)
    directions = principal_directions(frame.reduced(data), 16)
    return sketch(data, frame, directions, ((wide - 128) ** 2).sum(axis=1), int8).thumbnails


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("name", PICTURES)
def test_bounds_never_exceed_the_true_distance_and_come_near_it(name, int8):
    if int8 and not int8_is_exact():
        pytest.skip("int8 products overflow here: no VNNI")
    data = PICTURES[name]
    small, n = thumbnails(data, int8), len(data)
    queries = np.array([0, 17, 40])
    pairs = Pairs(np.repeat(np.arange(3), n), np.tile(np.arange(n), 3))
    bounds = small.bounds(queries, pairs).reshape(3, n)
    wide = data.astype(np.float64)
    true = ((wide[queries][:, None] - wide) ** 2).sum(axis=2)
    assert (bounds <= true).all()
    if name in ("pictures", "channels last"):  # of the same motif, only noise is left
        assert (bounds > 0.8 * true)[true > np.median(true)].all()


def test_the_bound_is_that_of_its_formula():
    data = SETS["pictures"]
    sums = data.astype(int).reshape(300, 3, 16, 2, 16, 2).sum(axis=(3, 5)).reshape(300, -1)
    means, center = sums // 4, frame_of(data).center
    squares = ((data - center) ** 2).sum(axis=1) - ((sums / 2 - 2 * center) ** 2).sum(axis=1)
    pairs = Pairs(np.zeros(300, int), np.arange(300))
    reach = 2 * np.sqrt(((means - means[5]) ** 2).sum(axis=1)) - 1.5 * np.sqrt(768)
    expected = np.maximum(reach, 0) ** 2 + (np.sqrt(squares) - np.sqrt(squares[5])) ** 2
    bounds = thumbnails(data).bounds(np.array([5]), pairs)
    np.testing.assert_allclose(bounds, expected, rtol=1e-3, atol=60)
    assert (bounds <= expected * (1 - 5e-10)).all()


def test_rows_that_are_no_pictures_have_none():
    data = SETS["noise"]
    directions = principal_directions(frame_of(data).reduced(data), 16)
    assert sketch(data, frame_of(data), directions).thumbnails is None


def test_a_rest_is_known_as_well_as_what_was_taken_away():
    low, high = rest_between(np.array([100.0, 5.0]), np.array([64.0, 5.0]), 0.1).T
    np.testing.assert_allclose(low**2, [36 - 6.4, 0], atol=1e-6)
    np.testing.assert_allclose(high**2, [36 + 6.4, 0.5], atol=1e-6)
