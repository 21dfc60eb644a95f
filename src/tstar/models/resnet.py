"""ResNet10: a 3×3 stem and one basic block per stage (He et al. 2016), all widths scaled by M."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tstar.models.layers import conv1, conv3, norm, scaled


def resnet10(in_channels: int, num_features: int, nd: int = 2, depth: int = 1) -> nn.Module:
    """The trunk: 1 + 4·2 convolutions (with the classifier, ten layers).

    Channels [64, 128, 256, 512]·M/512; every stage but the first halves the size. ``depth`` is the number of
    blocks per stage.
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
