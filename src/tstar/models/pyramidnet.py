"""PyramidNet10: four basic blocks whose channels grow additively to M (Han et al. 2017)."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tstar.models.layers import avg_pool, conv3, norm, scaled


def pyramid_channels(num_features: int, blocks: int = 4) -> list[int]:
    """Channels of the stem and of each block: c_k = c_0 + (M − c_0)·k/n, rounded, c_0 = M/8.

    The original grows by α/N a block from 16 channels; here M is given and α follows from it.
    """
    start = scaled(64, num_features)
    growth = num_features - start
    return [start + (2 * growth * k + blocks) // (2 * blocks) for k in range(blocks + 1)]


def pyramidnet10(in_channels: int, num_features: int, nd: int = 2, depth: int = 1) -> nn.Module:
    """The trunk: 1 + 4·2 convolutions, BN-ReLU at the end; all stages but the first halve the size.

    ``depth`` is the number of blocks per stage.
    """
    channels = pyramid_channels(num_features, 4 * depth)
    layers = [conv3(nd, in_channels, channels[0]), norm(nd, channels[0])]
    for block, (inputs, outputs) in enumerate(pairwise(channels)):
        layers.append(
            PyramidBlock(nd, inputs, outputs, stride=2 if block and block % depth == 0 else 1)
        )
    layers += [norm(nd, num_features), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class PyramidBlock(nn.Module):
    """BN(conv(ReLU(BN(conv(BN(x)))))) + x, x averaged to the new size and padded with zero channels."""

    def __init__(self, nd: int, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.norm1 = norm(nd, inputs)
        self.conv1 = conv3(nd, inputs, outputs, stride)
        self.norm2 = norm(nd, outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3(nd, outputs, outputs)
        self.norm3 = norm(nd, outputs)
        self.downsample = avg_pool(nd) if stride == 2 else nn.Identity()
        # F.pad counts from the last dimension: `nd` pairs of nothing, then the channels.
        self.padding = [0, 0] * nd + [0, outputs - inputs]

    def forward(self, x: Tensor) -> Tensor:
        residual = self.conv1(self.norm1(x))
        residual = self.norm3(self.conv2(self.relu(self.norm2(residual))))
        return torch.add(residual, F.pad(self.downsample(x), self.padding))
