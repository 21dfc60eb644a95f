"""The cross-entropy, plain and smoothed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tstar.report.figures.cross_entropy import cross_entropy_data


def test_cross_entropy_is_torch_s():
    torch = pytest.importorskip("torch")
    data = cross_entropy_data(num_classes=7, temperatures=(1, 3), smoothings=(0.0, 0.2))
    for s, smoothing in enumerate(data.smoothings):
        for t, T in enumerate(data.temperatures):
            for i in (0, 50, 120, 240):
                logits = torch.zeros(1, 7, dtype=torch.float64)
                logits[0, 2] = data.logits[i]
                want = torch.nn.functional.cross_entropy(
                    logits / T, torch.tensor([2]), label_smoothing=smoothing
                )
                assert data.losses[s, t, i] == pytest.approx(float(want), rel=1e-9, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.5, 8), st.floats(0.02, 0.5), st.integers(2, 200))
def test_smoothing_has_its_minimum_where_the_formula_says(T, eps, K):
    where = T * math.log(1 + K * (1 - eps) / eps)
    near = where + np.array([-0.05, 0.0, 0.05]) * T
    loss = cross_entropy_data(K, (T,), (eps,), near).losses[0, 0]
    assert loss[1] < min(loss[0], loss[2])
