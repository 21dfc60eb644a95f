"""Similarity of rows, against Bray and Curtis."""

import numpy as np
from scipy.spatial.distance import braycurtis

from tests.difficulty.helpers import row_stochastic
from tstar.difficulty.similarity import similarity


def test_similarity_is_one_minus_bray_curtis():
    S = row_stochastic(7)
    expected = [[1 - braycurtis(a, b) for b in S] for a in S]
    np.testing.assert_allclose(similarity(S), expected, atol=1e-14)
