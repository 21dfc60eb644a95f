"""A small ConvNeXt: wide depthwise convolutions, one norm and one activation per block."""

from __future__ import annotations

from torch import Tensor, nn

from tstar.models.layers import conv1
from tstar.surgery.layers import ChannelNorm


def convnext4(in_channels: int, num_features: int, nd: int = 2, depth: int = 2) -> nn.Module:
    """The trunk: patches of 2×2 pixels, two blocks of width M/2, halving, two of width M, a norm.

    ``depth`` is the number of blocks per stage.
    """
    half = max(1, num_features // 2)
    layers: list[nn.Module] = [
        nn.Conv2d(in_channels, half, 2, stride=2, bias=False),
        *(Block(half) for _ in range(depth)),
        ChannelNorm(half),
        nn.Conv2d(half, num_features, 2, stride=2, bias=False),
        *(Block(num_features) for _ in range(depth)),
        ChannelNorm(num_features),
    ]
    return nn.Sequential(*layers)


class Block(nn.Module):
    """x + 1×1(GELU(1×1(norm(7×7 depthwise(x))))), four times as wide inside (Liu et al. 2022)."""

    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Conv2d(width, width, 7, padding=3, groups=width, bias=False)
        self.norm = ChannelNorm(width)
        self.mlp = nn.Sequential(conv1(2, width, 4 * width), nn.GELU(), conv1(2, 4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.mlp(self.norm(self.mix(x)))
        return out
