"""Heads with unit-norm weights."""

import pytest
import torch
from torch import nn

from tests.methods.networks import random
from tstar.methods.cosine import UnitHead


@pytest.mark.parametrize("kind", ["cosine", "batch"])
def test_the_length_of_the_weights_does_not_matter(kind):
    layer = nn.Linear(5, 3, dtype=torch.float64)
    h = random(8, 5)
    once = UnitHead(layer, 0.5, kind)(h)
    with torch.no_grad():
        layer.weight *= torch.tensor([[2.0], [3.0], [0.1]])
    assert torch.allclose(UnitHead(layer, 0.5, kind)(h), once)


def test_the_weight_of_a_convolution_is_a_matrix():
    head = UnitHead(nn.Conv2d(6, 4, 1, bias=False), 1.0, "cosine")
    assert head.weight.shape == (4, 6)
    assert head(torch.ones(2, 6, 3, 3)).shape == (2, 4, 3, 3)


def test_cosines_are_bounded_and_divided_by_the_temperature():
    layer, h = nn.Linear(5, 3, dtype=torch.float64), random(8, 5)
    once, twice = (UnitHead(layer, T, "cosine")(h) for T in (1.0, 2.0))
    assert float(once.detach().abs().max()) <= 1
    assert torch.allclose(once / 2, twice)
    assert torch.allclose(UnitHead(layer, 1.0, "cosine")(7 * h), once)
