"""The Laplacian, against scipy's."""

import numpy as np
from scipy.sparse.csgraph import laplacian as scipy_laplacian

from tests.difficulty.helpers import row_stochastic
from tstar.difficulty.laplacian import laplacian
from tstar.difficulty.similarity import similarity


def test_laplacian_agrees_with_scipy_and_works_on_stacks():
    W = np.stack([similarity(row_stochastic(6, seed)) for seed in range(3)])
    expected = np.stack([scipy_laplacian(w) for w in W])
    np.testing.assert_allclose(laplacian(W), expected, atol=1e-14)
