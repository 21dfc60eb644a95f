"""A fixed temperature."""

import pytest

from tests.methods.networks import (
    Net,
    X,
    Y,
    ce,
    facts,
    loss_of,
)
from tstar import methods


def test_fixed_and_a_candidate_of_temperature_check():
    value, z, _ = loss_of("fixed", temperature=3.0)
    assert value == pytest.approx(ce(z / 3, Y), rel=1e-12)
    recipe = methods.get("temperature-check").at(1 / 0.3).prepare(Net(), facts())
    assert recipe.loss(recipe.model(X), Y, X).item() == pytest.approx(ce(0.3 * z, Y), rel=1e-12)
