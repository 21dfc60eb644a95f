"""Networks of the project's own studies that are not in the package: named in a spec as ``research.networks:NAME``.

``linear`` is the linear probe of frozen features. ``dense`` and ``gru`` are families that no law has seen: they come in only
where advice is tested that was written down before.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


def linear(num_classes: int, in_channels: int) -> nn.Module:
    """The output layer alone, on features that something else has computed."""
    return nn.Sequential(nn.Flatten(), nn.Linear(in_channels, num_classes))


class _Grow(nn.Module):
    """x and a new feature map of it, side by side (Huang et al. 2017)."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.conv = nn.Conv2d(inputs, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.conv(torch.relu(self.norm(x)))], 1)


def dense(num_classes: int, in_channels: int, num_features: int) -> nn.Module:
    """A small DenseNet for images: three stages of two layers, M channels at the end."""
    growth = max(1, num_features // 8)
    channels = num_features - 6 * growth
    layers: list[nn.Module] = [nn.Conv2d(in_channels, channels, 3, padding=1, bias=False)]
    for stage in range(3):
        if stage:
            layers.append(nn.AvgPool2d(2))
        for _ in range(2):
            layers.append(_Grow(channels, growth))
            channels += growth
    layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(channels, num_classes))


class _Last(nn.Module):
    """A recurrent network over the rows of an image or the samples of a signal; its last state."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, width, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.movedim(-2, 1).flatten(2) if x.dim() == 4 else x.transpose(1, 2)
        last: Tensor = self.gru(rows)[1][-1]
        return last


def gru(num_classes: int, in_channels: int, num_features: int) -> nn.Module:
    """A GRU of width M without any norm: images of 16 pixels by rows, signals sample by sample."""
    inputs = 16 * in_channels if in_channels in (1, 3) else in_channels
    return nn.Sequential(_Last(inputs, num_features), nn.Linear(num_features, num_classes))
