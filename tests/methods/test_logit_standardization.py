"""Distillation on standardized logits."""

import numpy as np
import pytest

from tests.methods.networks import K, Y, ce, kl, loss_of, random
from tstar.methods.logit_standardization import standardize


def z_score(z: np.ndarray) -> np.ndarray:
    return (z - z.mean(1, keepdims=True)) / (1e-7 + z.std(1, ddof=1, keepdims=True))


def test_logit_standardization():
    value, z, t = loss_of("logit-standardization")
    soft = kl(z_score(t) / 2, z_score(z) / 2)
    assert value == pytest.approx(0.1 * ce(z, Y) + 9 * 4 * soft, rel=1e-12)


def test_standardized_logits_have_mean_zero_and_deviation_one():
    z = 3 * random(4, K, seed=6) + 2
    assert np.allclose(standardize(z).numpy(), z_score(z.numpy()), rtol=1e-12, atol=1e-12)
