"""Temperatures that training finds, against NumPy."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.lab.methods import networks as nets
from tstar.lab import methods


def test_learned_temperature():
    recipe = methods.get("learned-temperature").prepare(nets.Net(), nets.facts())
    z = nets.Net()(nets.X).detach().numpy()
    assert recipe.loss(recipe.model(nets.X), nets.Y, nets.X).item() == pytest.approx(
        nets.ce(z, nets.Y), rel=1e-12
    )
    with torch.no_grad():
        recipe.model.head.log_scale.fill_(math.log(2.5))
    assert recipe.loss(recipe.model(nets.X), nets.Y, nets.X).item() == pytest.approx(
        nets.ce(2.5 * z, nets.Y), rel=1e-12
    )
    assert recipe.report()["temperature"] == pytest.approx(1 / 2.5)


def test_the_learned_temperature_is_clamped_and_can_come_back():
    recipe = methods.get("learned-temperature").prepare(nets.net(), nets.usual())
    head = recipe.model[3]
    for far, scale in ((50.0, 100.0), (-50.0, 1 / 512)):
        with torch.no_grad():
            head.log_scale.fill_(far)
        recipe.loss(recipe.model(nets.INPUTS), nets.LABELS, nets.INPUTS).backward()
        assert head.log_scale.exp().item() == pytest.approx(scale)
        assert head.log_scale.grad.item() != 0.0
        head.log_scale.grad = None


def test_relaxed_softmax():
    recipe = methods.get("relaxed-softmax").prepare(nets.Net(), nets.facts())
    head = recipe.model.head
    with torch.no_grad():
        head.alpha.weight.copy_(nets.random(1, nets.M, seed=8))
        head.alpha.bias.fill_(-0.7)
    value = recipe.loss(recipe.model(nets.X), nets.Y, nets.X).item()
    h = nets.Net().features(nets.X).detach().numpy()
    alpha = np.log1p(np.exp(h @ nets.random(1, nets.M, seed=8).numpy().T - 0.7)) + 1e-6
    assert value == pytest.approx(
        nets.ce(alpha * nets.Net()(nets.X).detach().numpy(), nets.Y), rel=1e-12
    )


def test_relaxed_softmax_with_alpha_one_is_the_default():
    relaxed = methods.get("relaxed-softmax").prepare(nets.net(), nets.usual())
    default = methods.get("default").prepare(nets.net(), nets.usual())
    with torch.no_grad():
        relaxed.model[3].alpha.bias.fill_(math.log(math.expm1(1 - 1e-6)))
    a, b = (r.loss(r.model(nets.INPUTS), nets.LABELS, nets.INPUTS) for r in (relaxed, default))
    assert a.item() == pytest.approx(b.item(), rel=1e-12)


def test_insert_ln():
    value, z, _ = nets.loss_of("insert-ln")
    normal = (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-5)
    assert value == pytest.approx(nets.ce(normal, nets.Y), rel=1e-12)


@pytest.mark.parametrize(("classes", "cap"), [(2, 0.881), (10, 0.757), (20, 0.838), (100, 0.996)])
def test_insert_ln_without_affine_caps_the_largest_probability(classes, cap):
    head = methods.get("insert-ln", affine=False).prepare(
        nn.Sequential(nn.Linear(1, classes, dtype=torch.float64)), nets.usual(num_classes=classes)
    )
    layer = head.model[0].layer
    with torch.no_grad():
        layer.bias.zero_()
        layer.weight.zero_()[0] = 1e6  # one logit far above equal others: the extreme case
    top = head.model(torch.ones(1, 1, dtype=torch.float64)).softmax(1).max().item()
    assert top == pytest.approx(cap, abs=6e-4)
    with torch.no_grad():
        layer.weight.copy_(nets.random(classes, 1) * 1e3)
    assert head.model(torch.ones(1, 1, dtype=torch.float64)).softmax(1).max().item() <= top


def test_insert_ln_with_affine_has_no_cap_and_trains_it():
    recipe = methods.get("insert-ln").prepare(nets.net(), nets.usual())
    names = [name for name, _ in recipe.model.named_parameters()]
    assert "3.norm.weight" in names
    assert "3.norm.bias" in names
