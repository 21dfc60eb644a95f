"""The cosine classifier at NormFace's bound."""

import math

import pytest

from tests.methods.networks import cosine_loss, loss_of


def test_the_bound_at_the_probability():
    value, *_ = loss_of("normface-bound")
    assert value == pytest.approx(cosine_loss(0.8 * math.log(4 * 0.99 / 0.01)), rel=1e-6)
    other, *_ = loss_of("normface-bound", probability=0.8)
    assert other == pytest.approx(cosine_loss(0.8 * math.log(4 * 4)), rel=1e-6)
