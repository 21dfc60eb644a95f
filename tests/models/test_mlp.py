"""The perceptron for vectors."""

import torch
from torch import nn

from tstar.models.mlp import mlp


def test_two_hidden_layers_without_bias():
    trunk = mlp(12, 8)
    layers = [module for module in trunk if isinstance(module, nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in layers] == [(12, 8), (8, 8)]
    assert all(layer.bias is None for layer in layers)
    assert trunk(torch.zeros(4, 3, 2, 2)).shape == (4, 8)
