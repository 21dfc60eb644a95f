"""The plain cross-entropy."""

import pytest

from tests.methods.networks import Y, ce, loss_of


def test_default():
    value, z, _ = loss_of("default")
    assert value == pytest.approx(ce(z, Y), rel=1e-12)
