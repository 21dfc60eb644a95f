"""A multilayer perceptron for vectors: two hidden layers of width M."""

from __future__ import annotations

from torch import nn


def mlp(in_features: int, num_features: int, depth: int = 2, *, norms: bool = True) -> nn.Module:
    """The trunk: twice linear-BN-ReLU. Images and signals are flattened first.

    ``depth`` is the number of hidden layers. Without ``norms`` the linear layers have a bias in place of the BN, which
    would remove it.
    """
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs in (in_features, *[num_features] * (depth - 1)):
        layers.append(nn.Linear(inputs, num_features, bias=not norms))
        layers += [nn.BatchNorm1d(num_features)] if norms else []
        layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers)
