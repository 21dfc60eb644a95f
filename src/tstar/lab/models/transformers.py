"""Networks of patches: a small vision transformer and a small MLP-Mixer, without heads."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tstar.lab.models.layers import ChannelNorm, conv1

_PATCH = 4
_GRID = 4  # the mixer's patches are averaged to a 4×4 grid, so that images of any size are taken
_HEAD_WIDTH = 16  # channels of an attention head, as near as M allows


def vit4(in_channels: int, num_features: int, nd: int = 2, depth: int = 4) -> nn.Module:
    """Patches of 4×4 pixels, positions, ``depth`` pre-norm blocks of attention, a last norm.

    Positions come from a 3×3 depthwise convolution (Chu et al. 2021, "Conditional Positional
    Encodings"), so that images of any size are taken.
    """
    patches = nn.Conv2d(in_channels, num_features, _PATCH, stride=_PATCH, bias=False)
    blocks = [Attention(num_features) for _ in range(depth)]
    return nn.Sequential(patches, Positions(num_features), *blocks, ChannelNorm(num_features))


class Positions(nn.Module):
    """x + depthwise 3×3 convolution of x: the zeros at the border tell where one is."""

    def __init__(self, width: int):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, groups=width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.conv(x)
        return out


class Attention(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)), on maps (Dosovitskiy et al. 2021)."""

    def __init__(self, width: int):
        super().__init__()
        self.heads = head_count(width)
        self.norm1, self.norm2 = ChannelNorm(width), ChannelNorm(width)
        self.qkv = conv1(2, width, 3 * width)
        self.out = conv1(2, width, width)
        self.mlp = _mlp(width)

    def forward(self, x: Tensor) -> Tensor:
        # N×3M×H×W → 3×N×heads×(H·W)×(M/heads)
        parts = self.qkv(self.norm1(x)).flatten(2).unflatten(1, (3, self.heads, -1))
        q, k, v = parts.permute(1, 0, 2, 4, 3).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(x.shape)
        x = x + self.out(mixed)
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


def _mlp(width: int) -> nn.Module:
    return nn.Sequential(conv1(2, width, 2 * width), nn.GELU(), conv1(2, 2 * width, width))


def head_count(width: int) -> int:
    """The most heads that divide M, none narrower than 16 channels."""
    return max(h for h in range(1, max(1, width // _HEAD_WIDTH) + 1) if width % h == 0)


def mixer4(in_channels: int, num_features: int, nd: int = 2, depth: int = 4) -> nn.Module:
    """Patches of 4×4 pixels, ``depth`` blocks of token and channel mixing, a last norm."""
    patches = nn.Conv2d(in_channels, num_features, _PATCH, stride=_PATCH, bias=False)
    blocks = [Mixer(num_features) for _ in range(depth)]
    grid = nn.AdaptiveAvgPool2d(_GRID)
    return nn.Sequential(patches, grid, *blocks, ChannelNorm(num_features))


class Mixer(nn.Module):
    """x + mlp over the patches of norm(x), then over the channels (Tolstikhin et al. 2021)."""

    def __init__(self, width: int):
        super().__init__()
        tokens = _GRID**2
        self.norm1, self.norm2 = ChannelNorm(width), ChannelNorm(width)
        first = nn.Linear(tokens, 2 * tokens, bias=False)
        self.tokens = nn.Sequential(first, nn.GELU(), nn.Linear(2 * tokens, tokens, bias=False))
        self.channels = _mlp(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norm1(x).flatten(2)).reshape(x.shape)
        return torch.add(x, self.channels(self.norm2(x)))
