"""The share of each class among the neighbors, by hand."""

import numpy as np

from tstar.difficulty.expectation import expectation, sample_weights


def test_expectation_with_volumes_by_hand():
    # class 0: samples with neighbors (0, 1) and (1, 1), volumes 1 and 4; class 1: one, (1, 0)
    codes, owners = np.array([[0, 1], [1, 1], [1, 0]]), np.array([0, 0, 1])
    weights = sample_weights(np.log([1.0, 4.0, 1e300]), owners, 2)
    S = expectation(codes, owners, weights, 2)
    np.testing.assert_allclose(S, [[0.5 / 1.25, 0.75 / 1.25], [0.5, 0.5]])
