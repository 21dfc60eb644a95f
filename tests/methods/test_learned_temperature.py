"""A temperature that is trained."""

import math

import pytest
import torch

from tests.methods.networks import (
    INPUTS,
    LABELS,
    Net,
    X,
    Y,
    ce,
    facts,
    net,
    usual,
)
from tstar import methods


def test_learned_temperature():
    recipe = methods.get("learned-temperature").prepare(Net(), facts())
    z = Net()(X).detach().numpy()
    assert recipe.loss(recipe.model(X), Y, X).item() == pytest.approx(ce(z, Y), rel=1e-12)
    with torch.no_grad():
        recipe.model.head.log_scale.fill_(math.log(2.5))
    assert recipe.loss(recipe.model(X), Y, X).item() == pytest.approx(ce(2.5 * z, Y), rel=1e-12)
    assert recipe.report()["temperature"] == pytest.approx(1 / 2.5)


def test_the_learned_temperature_is_clamped_and_can_come_back():
    recipe = methods.get("learned-temperature").prepare(net(), usual())
    head = recipe.model[3]
    for far, scale in ((50.0, 100.0), (-50.0, 1 / 512)):
        with torch.no_grad():
            head.log_scale.fill_(far)
        recipe.loss(recipe.model(INPUTS), LABELS, INPUTS).backward()
        assert head.log_scale.exp().item() == pytest.approx(scale)
        assert head.log_scale.grad.item() != 0.0
        head.log_scale.grad = None
