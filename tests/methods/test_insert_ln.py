"""LayerNorm on the logits."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.methods.networks import (
    Y,
    ce,
    loss_of,
    net,
    random,
    usual,
)
from tstar import methods


def test_insert_ln():
    value, z, _ = loss_of("insert-ln")
    normal = (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-5)
    assert value == pytest.approx(ce(normal, Y), rel=1e-12)


@pytest.mark.parametrize(("classes", "cap"), [(2, 0.881), (10, 0.757), (20, 0.838), (100, 0.996)])
def test_insert_ln_without_affine_caps_the_largest_probability(classes, cap):
    head = methods.get("insert-ln", affine=False).prepare(
        nn.Sequential(nn.Linear(1, classes, dtype=torch.float64)), usual(num_classes=classes)
    )
    layer = head.model[0].layer
    with torch.no_grad():
        layer.bias.zero_()
        layer.weight.zero_()[0] = 1e6  # one logit far above equal others: the extreme case
    top = head.model(torch.ones(1, 1, dtype=torch.float64)).softmax(1).max().item()
    assert top == pytest.approx(cap, abs=6e-4)
    with torch.no_grad():
        layer.weight.copy_(random(classes, 1) * 1e3)
    assert head.model(torch.ones(1, 1, dtype=torch.float64)).softmax(1).max().item() <= top


def test_insert_ln_with_affine_has_no_cap_and_trains_it():
    recipe = methods.get("insert-ln").prepare(net(), usual())
    names = [name for name, _ in recipe.model.named_parameters()]
    assert "3.norm.weight" in names
    assert "3.norm.bias" in names
