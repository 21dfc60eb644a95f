"""The cumulative gradient of a spectrum."""

import numpy as np
import pytest

from tstar.difficulty.gradient import cumulative_gradient
from tstar.difficulty.laplacian import laplacian
from tstar.difficulty.similarity import similarity


@pytest.mark.parametrize("K", [2, 3, 10, 100])
def test_separated_classes_give_exactly_zero_and_identical_ones_K_minus_one(K):
    assert cumulative_gradient(np.linalg.eigvalsh(laplacian(similarity(np.eye(K))))) == 0.0
    same = np.full((K, K), 1 / K)
    value = float(cumulative_gradient(np.linalg.eigvalsh(laplacian(similarity(same)))))
    assert value == pytest.approx(K - 1, abs=1e-11)


def test_gradient_by_hand():
    # λ = 0, 3, 4, 10 (K = 4): steps 3/4, 1/3, 6/2; running maxima 3/4, 3/4, 3
    assert float(cumulative_gradient(np.array([0.0, 3.0, 4.0, 10.0]))) == pytest.approx(4.5)
