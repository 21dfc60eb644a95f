"""Curriculum temperature: the student descends the loss that the temperature climbs."""

import math

import pytest
import torch

from tests.methods.networks import (
    INPUTS,
    LABELS,
    Y,
    ce,
    kl,
    loss_of,
    net,
    usual,
)
from tstar import methods
from tstar.methods.ctkd import AdversarialTemperature, reversal


def test_ctkd():
    value, z, t = loss_of("ctkd")
    tau = 1 + 20 / (1 + math.exp(-1))
    assert value == pytest.approx(0.1 * ce(z, Y) + 0.9 * tau**2 * kl(t / tau, z / tau), rel=1e-6)


@pytest.mark.parametrize(
    ("epoch", "value"),
    [(1, 0.5 * (1 + math.cos(0.1 * math.pi)) - 1), (5, -0.5), (10, -1), (20, -1)],
)
def test_ctkds_curriculum(epoch, value):
    assert reversal(epoch) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("epoch", [1, 5, 10, 20])
def test_ctkds_temperature_climbs_the_loss_that_the_student_descends(epoch):
    recipe = methods.get("ctkd").prepare(net(), usual())
    (tau,) = recipe.extra
    assert tau.factor == pytest.approx(0.5 * (1 + math.cos(math.pi / 10)) - 1)  # epoch 1 until told
    assert recipe.on_epoch(epoch, 20) == 1.0  # the learning rate is left alone
    assert isinstance(tau, AdversarialTemperature)
    assert tau().item() == pytest.approx(1 + 20 / (1 + math.exp(-1)), rel=1e-6)
    loss = recipe.loss(recipe.model(INPUTS), LABELS, INPUTS)
    loss.backward()

    def at(u: float) -> float:
        with torch.no_grad():
            tau.u.fill_(u)
            return recipe.loss(recipe.model(INPUTS), LABELS, INPUTS).item()

    slope = (at(1 + 1e-4) - at(1 - 1e-4)) / 2e-4
    lam = 0.5 * (1 + math.cos(math.pi * min(epoch, 10) / 10)) - 1
    assert tau.u.grad.item() == pytest.approx(lam * slope, rel=1e-4)
    # One SGD step on u at this gradient raises the loss.
    assert at(1 - 0.01 * tau.u.grad.item()) > at(1.0)


def test_ctkds_temperature_is_trained_by_the_optimizer():
    recipe = methods.get("ctkd").prepare(net(), usual())
    assert sum(p.numel() for p in recipe.extra.parameters()) == 1
