"""A multilayer perceptron for vectors: two hidden layers of width M."""

from __future__ import annotations

from torch import nn


def mlp(in_features: int, num_features: int, depth: int = 2) -> nn.Module:
    """The trunk: twice linear-BN-ReLU. Images and signals are flattened first.

    ``depth`` is the number of hidden layers. The linear layers have no bias, as the convolutions of the other networks: BN removes it.
    """
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs in (in_features, *[num_features] * (depth - 1)):
        layers += [
            nn.Linear(inputs, num_features, bias=False),
            nn.BatchNorm1d(num_features),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*layers)
