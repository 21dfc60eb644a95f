"""The networks' trunks: ResNet10, VGG9, PyramidNet10, CNN4 without norms; of patches a ConvNeXt, a
vision transformer and an MLP-Mixer.

Each function makes a trunk: input channels and M in, maps of M channels out. ``nd`` is 2 for
images and 1 for signals; ``depth`` is the number of blocks or layers per stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tstar.lab.models.layers import ChannelNorm, conv1, conv3, layer, scaled

# Configuration A of Simonyan & Zisserman (2015) without its last pooling: global average pooling
# takes that place, so that inputs of 16 pixels still fit.
_VGG = ((64,), (128,), (256, 256), (512, 512), (512, 512))
_PATCH = 4
_GRID = 4  # the mixer's patches are averaged to a 4×4 grid, so that images of any size are taken
_HEAD_WIDTH = 16  # channels of an attention head, as near as M allows


def resnet10(in_channels: int, num_features: int, nd: int = 2, depth: int = 1) -> nn.Module:
    """A 3×3 stem and one basic block per stage (He et al. 2016): 1 + 4·2 convolutions.

    Channels [64, 128, 256, 512]·M/512; every stage but the first halves the size.
    """
    channels = scaled(64, num_features)
    layers = [conv3(nd, in_channels, channels), norm(nd, channels), nn.ReLU(inplace=True)]
    for base, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        outputs = scaled(base, num_features)
        for block in range(depth):
            layers.append(BasicBlock(nd, channels, outputs, 1 if block else stride))
            channels = outputs
    return nn.Sequential(*layers)


class BasicBlock(nn.Module):
    """ReLU(BN(conv(ReLU(BN(conv(x))))) + shortcut(x))."""

    def __init__(self, nd: int, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.conv1 = conv3(nd, inputs, outputs, stride)
        self.norm1 = norm(nd, outputs)
        self.conv2 = conv3(nd, outputs, outputs)
        self.norm2 = norm(nd, outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(conv1(nd, inputs, outputs, stride), norm(nd, outputs))

    def forward(self, x: Tensor) -> Tensor:
        residual = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        result: Tensor = self.relu(torch.add(residual, self.shortcut(x)))
        return result


def vgg9(in_channels: int, num_features: int, nd: int = 2, depth: int = 1) -> nn.Module:
    """The eight conv-BN-ReLU layers of VGG configuration A, widths scaled by M/512."""
    return _stages(_VGG, in_channels, num_features, nd, depth, norms=True)


def cnn4(in_channels: int, num_features: int, nd: int = 2, depth: int = 1) -> nn.Module:
    """Four conv-ReLU stages, as before batch normalization; biases in place of norms."""
    return _stages(((64,), (128,), (256,), (512,)), in_channels, num_features, nd, depth)


def _stages(
    stages: Sequence[Sequence[int]],
    channels: int,
    num_features: int,
    nd: int,
    depth: int,
    *,
    norms: bool = False,
) -> nn.Module:
    layers: list[nn.Module] = []
    for stage, widths in enumerate(stages):
        # ``ceil_mode`` leaves a map of one pixel as it is, so that 8×8 inputs work.
        layers += [layer("MaxPool", nd, 2, ceil_mode=True)] if stage else []
        for base in (width for width in widths for _ in range(depth)):
            outputs = scaled(base, num_features)
            if norms:
                layers += [conv3(nd, channels, outputs), norm(nd, outputs)]
            else:
                layers.append(layer("Conv", nd, channels, outputs, 3, padding=1))
            layers.append(nn.ReLU(inplace=True))
            channels = outputs
    return nn.Sequential(*layers)


def pyramidnet10(in_channels: int, num_features: int, nd: int = 2, depth: int = 1) -> nn.Module:
    """Four basic blocks whose channels grow additively to M (Han et al. 2017), BN-ReLU at the end.

    All stages but the first halve the size.
    """
    channels = pyramid_channels(num_features, 4 * depth)
    layers = [conv3(nd, in_channels, channels[0]), norm(nd, channels[0])]
    for block, (inputs, outputs) in enumerate(pairwise(channels)):
        stride = 2 if block and block % depth == 0 else 1
        layers.append(PyramidBlock(nd, inputs, outputs, stride))
    layers += [norm(nd, num_features), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def pyramid_channels(num_features: int, blocks: int = 4) -> list[int]:
    """Channels of the stem and of each block: c_k = c_0 + (M − c_0)·k/n, rounded, c_0 = M/8.

    The original grows by α/N a block from 16 channels; here M is given and α follows from it.
    """
    start = scaled(64, num_features)
    growth = num_features - start
    return [start + (2 * growth * k + blocks) // (2 * blocks) for k in range(blocks + 1)]


class PyramidBlock(nn.Module):
    """BN(conv(ReLU(BN(conv(BN(x)))))) + x, x averaged to the new size, with zero channels."""

    def __init__(self, nd: int, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.norm1 = norm(nd, inputs)
        self.conv1 = conv3(nd, inputs, outputs, stride)
        self.norm2 = norm(nd, outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3(nd, outputs, outputs)
        self.norm3 = norm(nd, outputs)
        # Odd sizes round up, as a convolution of stride 2 does.
        pool = layer("AvgPool", nd, 2, ceil_mode=True)
        self.downsample = pool if stride == 2 else nn.Identity()
        # F.pad counts from the last dimension: `nd` pairs of nothing, then the channels.
        self.padding = [0, 0] * nd + [0, outputs - inputs]

    def forward(self, x: Tensor) -> Tensor:
        residual = self.conv1(self.norm1(x))
        residual = self.norm3(self.conv2(self.relu(self.norm2(residual))))
        return torch.add(residual, F.pad(self.downsample(x), self.padding))


def convnext4(in_channels: int, num_features: int, nd: int = 2, depth: int = 2) -> nn.Module:
    """Patches of 2×2 pixels, two ConvNeXt blocks of width M/2, halving, two of width M, a norm."""
    layers: list[nn.Module] = []
    for width in (max(1, num_features // 2), num_features):
        layers.append(nn.Conv2d(in_channels, width, 2, stride=2, bias=False))
        layers += [*(ConvNextBlock(width) for _ in range(depth)), ChannelNorm(width)]
        in_channels = width
    return nn.Sequential(*layers)


class ConvNextBlock(nn.Module):
    """x + 1×1(GELU(1×1(norm(7×7 depthwise(x))))), 4·M wide inside (Liu et al. 2022)."""

    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Conv2d(width, width, 7, padding=3, groups=width, bias=False)
        self.norm = ChannelNorm(width)
        self.mlp = _mlp(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.mlp(self.norm(self.mix(x)))
        return out


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
        self.mlp = _mlp(width, 2 * width)

    def forward(self, x: Tensor) -> Tensor:
        # N×3M×H×W → 3×N×heads×(H·W)×(M/heads)
        parts = self.qkv(self.norm1(x)).flatten(2).unflatten(1, (3, self.heads, -1))
        q, k, v = parts.permute(1, 0, 2, 4, 3).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(x.shape)
        x = x + self.out(mixed)
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


def _mlp(width: int, inside: int) -> nn.Module:
    return nn.Sequential(conv1(2, width, inside), nn.GELU(), conv1(2, inside, width))


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
        self.channels = _mlp(width, 2 * width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norm1(x).flatten(2)).reshape(x.shape)
        return torch.add(x, self.channels(self.norm2(x)))


def norm(nd: int, channels: int) -> nn.Module:
    return layer("BatchNorm", nd, channels)
