"""The small MLP-Mixer: tokens are mixed with tokens, channels with channels."""

import torch
from torch import nn

from tstar.models.mixer import Grid, Mixer


def test_maps_of_any_size_come_to_one_grid():
    x = torch.randn(2, 5, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(Grid()(x), x.view(2, 5, 4, 2, 4, 2).mean((3, 5)))
    assert Grid()(x[:, :, :3, :2]).shape == (2, 5, 4, 4)


def test_each_half_mixes_one_axis():
    block = Mixer(6).eval()
    x = torch.randn(1, 6, 4, 4, generator=torch.Generator().manual_seed(0))
    moved = x.clone()
    moved[0, :, 0, 0] += torch.arange(6.0)  # another pixel, which the norm of its own sees
    nn.init.zeros_(block.tokens[2].weight)
    changed = (block(moved) - block(x)).abs().sum(1)[0] > 1e-6
    assert changed.sum() == 1  # without the tokens' half only that pixel changes
    nn.init.ones_(block.tokens[2].weight)
    assert ((block(moved) - block(x)).abs().sum(1)[0] > 1e-6).all()
