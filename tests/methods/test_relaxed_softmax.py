"""Relaxed softmax: a temperature for each sample."""

import math

import numpy as np
import pytest
import torch

from tests.methods.networks import (
    INPUTS,
    LABELS,
    M,
    Net,
    X,
    Y,
    ce,
    facts,
    net,
    random,
    usual,
)
from tstar import methods


def test_relaxed_softmax():
    recipe = methods.get("relaxed-softmax").prepare(Net(), facts())
    head = recipe.model.head
    with torch.no_grad():
        head.alpha.weight.copy_(random(1, M, seed=8))
        head.alpha.bias.fill_(-0.7)
    value = recipe.loss(recipe.model(X), Y, X).item()
    h = Net().features(X).detach().numpy()
    alpha = np.log1p(np.exp(h @ random(1, M, seed=8).numpy().T - 0.7)) + 1e-6
    assert value == pytest.approx(ce(alpha * Net()(X).detach().numpy(), Y), rel=1e-12)


def test_relaxed_softmax_starts_as_the_default():
    relaxed = methods.get("relaxed-softmax").prepare(net(), usual())
    default = methods.get("default").prepare(net(), usual())
    assert torch.allclose(relaxed.model(INPUTS), default.model(INPUTS), rtol=2e-6, atol=0)


def test_relaxed_softmax_with_alpha_one_is_the_default():
    relaxed = methods.get("relaxed-softmax").prepare(net(), usual())
    default = methods.get("default").prepare(net(), usual())
    with torch.no_grad():
        relaxed.model[3].alpha.bias.fill_(math.log(math.expm1(1 - 1e-6)))
    a, b = (r.loss(r.model(INPUTS), LABELS, INPUTS) for r in (relaxed, default))
    assert a.item() == pytest.approx(b.item(), rel=1e-12)
