"""Heated-up softmax."""

import math

import numpy as np
import pytest

from tests.methods.networks import (
    M,
    Net,
    X,
    Y,
    ce,
    facts,
)
from tstar import methods


@pytest.mark.parametrize(("epoch", "factor"), [(1, 1), (15, 1), (16, 4), (20, 4)])
def test_heated_up(epoch, factor):
    recipe = methods.get("heated-up").prepare(Net(), facts())
    lr_factor = recipe.on_epoch(epoch, 20)
    value = recipe.loss(recipe.model(X), Y, X).item()
    h, w = Net().features(X).detach().numpy(), Net().head.weight.detach().numpy()
    h = (h - h.mean(0)) / np.sqrt(h.var(0) + 1e-5)
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    assert value == pytest.approx(ce(16 / math.sqrt(M) / factor * h @ w.T, Y), rel=1e-6)
    assert lr_factor == {1: 1.0, 4: 0.1}[factor]
