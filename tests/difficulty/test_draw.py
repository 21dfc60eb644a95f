"""The draw of samples: uniform, seeded, the same everywhere."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tstar.difficulty.draw import draw


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(0, 99), st.integers(1, 9))
def test_draw_takes_what_there_is_once_and_from_the_right_class(labels, seed, samples):
    codes = np.unique(labels, return_inverse=True)[1]
    drawn = draw(codes, samples, seed)
    for code, rows in enumerate(drawn):
        assert len(rows) == min(samples, (codes == code).sum())
        assert len(set(rows.tolist())) == len(rows)
        assert (codes[rows] == code).all()


def test_draw_is_uniform_over_positions_and_differs_between_seeds_and_repeats():
    codes = np.zeros(40, dtype=np.int64)
    counts = np.zeros(40)
    for seed in range(400):
        counts[draw(codes, 10, seed)[0]] += 1
    assert counts.min() > 60  # the mean is 100, the standard deviation 8.7
    assert counts.max() < 140
    draws = [tuple(draw(codes, 10, 0, repeat)[0]) for repeat in range(5)]
    assert len(set(draws)) == 5


def test_the_draw_is_the_same_on_every_platform():
    drawn = [rows.tolist() for rows in draw(np.arange(12) % 2, 3, 0)]
    assert drawn == [[2, 6, 8], [1, 3, 11]]
