"""The network without norms."""

import torch
from torch import nn

from tstar.models.cnn import cnn4


def test_four_stages_of_scaled_widths_with_biases_and_no_norm():
    trunk = cnn4(3, 256)
    convolutions = [module for module in trunk if isinstance(module, nn.Conv2d)]
    assert [layer.out_channels for layer in convolutions] == [32, 64, 128, 256]
    assert all(layer.bias is not None for layer in convolutions)
    assert not any("Norm" in type(module).__name__ for module in trunk)
    assert trunk(torch.zeros(2, 3, 16, 16)).shape == (2, 256, 2, 2)


def test_depth_and_signals():
    trunk = cnn4(2, 64, nd=1, depth=3)
    assert sum(isinstance(module, nn.Conv1d) for module in trunk) == 12
    assert trunk(torch.zeros(2, 2, 32)).shape == (2, 64, 4)
