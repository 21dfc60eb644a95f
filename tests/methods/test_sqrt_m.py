"""T = sqrt(M)."""

import math

import pytest

from tests.methods.networks import (
    M,
    Y,
    ce,
    loss_of,
)


def test_sqrt_m():
    value, z, _ = loss_of("sqrt-m")
    assert value == pytest.approx(ce(z / math.sqrt(M), Y), rel=1e-12)
