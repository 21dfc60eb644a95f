"""A small MLP-Mixer: patches of four pixels, mixed over the patches and over the channels in turn."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tstar.models.layers import conv1
from tstar.surgery.layers import ChannelNorm

_PATCH = 4
_GRID = 4  # patches are averaged to a 4×4 grid, so that images of any size are taken


def mixer4(in_channels: int, num_features: int, nd: int = 2, depth: int = 4) -> nn.Module:
    """The trunk: patches, ``depth`` blocks of token and channel mixing of width M, a last norm."""
    patches = nn.Conv2d(in_channels, num_features, _PATCH, stride=_PATCH, bias=False)
    blocks = [Mixer(num_features) for _ in range(depth)]
    return nn.Sequential(patches, Grid(), *blocks, ChannelNorm(num_features))


class Grid(nn.Module):
    """Maps of any size brought to 4×4: averaged where they are larger, repeated where smaller."""

    def forward(self, x: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(x, _GRID)


class Mixer(nn.Module):
    """x + mlp over the patches of norm(x), then x + mlp over the channels (Tolstikhin et al. 2021)."""

    def __init__(self, width: int):
        super().__init__()
        tokens = _GRID**2
        self.norm1, self.norm2 = ChannelNorm(width), ChannelNorm(width)
        self.tokens = nn.Sequential(
            nn.Linear(tokens, 2 * tokens, bias=False),
            nn.GELU(),
            nn.Linear(2 * tokens, tokens, bias=False),
        )
        self.channels = nn.Sequential(
            conv1(2, width, 2 * width), nn.GELU(), conv1(2, 2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norm1(x).flatten(2)).reshape(x.shape)
        return torch.add(x, self.channels(self.norm2(x)))
