"""Lower bounds of distances, and their thresholds."""

import numpy as np

from tstar.difficulty.neighbors.scores import _by_rows, padded
from tstar.difficulty.neighbors.sketch import (
    Sketch,
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
