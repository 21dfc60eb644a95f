"""Exponents and cliffs on curves whose answers are known."""

import math

import pytest

from research.laws.exponents import shared_exponent, too_hot
from tests.planted import frame
from tstar.errors import TstarError
from tstar.evidence import cases


@pytest.mark.parametrize("b", [0.0, 0.5, 1.0])
def test_the_exponent_of_a_power_law_is_found(b):
    runs = frame(lambda d, M: (1.0 if d == "a" else 3.0) * (M / 64) ** b * 2, widths=(32, 64, 256))
    found = shared_exponent([c.curve() for c in cases(runs)], "num_features")
    assert found.value == pytest.approx(b, abs=0.1)
    assert found.groups == 2
    assert found.low <= found.value <= found.high


def test_groups_differ_in_the_variable_alone():
    runs = frame(lambda d, M: 4.0, datasets=("a",), widths=(64, 128))
    with pytest.raises(TstarError, match="'lr' alone"):
        shared_exponent([c.curve() for c in cases(runs)], "lr")


def test_too_hot_is_half_way_down_to_chance():
    runs = frame(lambda d, M: 4.0, datasets=("a",))
    runs["test_accuracy"] = [0.9 if T <= 16 else 0.1 for T in runs.temperature]
    assert too_hot(cases(runs)[0].curve()) == pytest.approx(math.sqrt(16 * 32))
    runs["test_accuracy"] = 0.9
    assert too_hot(cases(runs)[0].curve()) is None
