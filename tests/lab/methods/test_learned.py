"""Temperatures that training finds, against NumPy."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.lab.methods.networks import H, M, Z, ce, facts, loss, normalized, prepared, random
from tstar.lab import methods


def test_learned_temperature():
    recipe = prepared("learned-temperature")
    assert loss(recipe).item() == pytest.approx(ce(Z), rel=1e-12)
    with torch.no_grad():
        recipe.model.head.log_scale.fill_(math.log(2.5))
    assert loss(recipe).item() == pytest.approx(ce(2.5 * Z), rel=1e-12)
    assert recipe.report()["temperature"] == pytest.approx(1 / 2.5)


@pytest.mark.parametrize(("far", "scale"), [(50.0, 100.0), (-50.0, 1 / 512)])
def test_the_learned_temperature_is_clamped_and_can_come_back(far, scale):
    recipe = prepared("learned-temperature")
    head = recipe.model.head
    with torch.no_grad():
        head.log_scale.fill_(far)
    loss(recipe).backward()
    assert head.log_scale.exp().item() == pytest.approx(scale)
    assert head.log_scale.grad.item() != 0.0


def test_relaxed_softmax_starts_as_the_default():
    recipe = prepared("relaxed-softmax")
    assert loss(recipe).item() == pytest.approx(ce((1 + 1e-6) * Z), rel=1e-6)
    head, weight = recipe.model.head, random(1, M, seed=8)
    with torch.no_grad():
        head.alpha.weight.copy_(weight)
        head.alpha.bias.fill_(-0.7)
    alpha = np.log1p(np.exp(H @ weight.numpy().T - 0.7)) + 1e-6
    assert loss(recipe).item() == pytest.approx(ce(alpha * Z), rel=1e-12)


def test_insert_ln():
    recipe = prepared("insert-ln")
    assert loss(recipe).item() == pytest.approx(ce(normalized(Z, 1)), rel=1e-12)
    assert {"head.norm.weight", "head.norm.bias"} <= dict(recipe.model.named_parameters()).keys()


@pytest.mark.parametrize(("classes", "cap"), [(2, 0.881), (10, 0.757), (20, 0.838), (100, 0.996)])
def test_insert_ln_without_affine_caps_the_largest_probability(classes, cap):
    one = torch.ones(1, 1, dtype=torch.float64)
    model = nn.Sequential(nn.Linear(1, classes, dtype=torch.float64))
    method = methods.get("insert-ln", affine=False)
    head = method.prepare(model, facts(num_classes=classes)).model
    with torch.no_grad():
        head[0].layer.bias.zero_()
        # One logit far above equal others: the extreme case.
        head[0].layer.weight.zero_()[0] = 1e6
        top = head(one).softmax(1).max().item()
        assert top == pytest.approx(cap, abs=6e-4)
        head[0].layer.weight.copy_(random(classes, 1) * 1e3)
        assert head(one).softmax(1).max().item() <= top
