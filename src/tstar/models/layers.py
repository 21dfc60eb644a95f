"""What the networks share: layers for one and two dimensions, channel counts, initialization.

``nd`` is the number of spatial dimensions: 2 for images, 1 for signals.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tstar.models.small_maps import Conv3x3


def _layer(kind: str, nd: int, *sizes: int, **options: Any) -> nn.Module:
    """torch's layer of that kind for ``nd`` dimensions."""
    made: nn.Module = getattr(nn, f"{kind}{nd}d")(*sizes, **options)
    return made


def conv3(nd: int, inputs: int, outputs: int, stride: int = 1) -> nn.Module:
    """A convolution of width 3 that keeps the size (halves it with stride 2), without bias."""
    if nd == 2 and stride == 1:
        return Conv3x3(inputs, outputs)
    return _layer("Conv", nd, inputs, outputs, 3, stride=stride, padding=1, bias=False)


def biased_conv3(nd: int, inputs: int, outputs: int) -> nn.Module:
    """The same with a bias, for networks without norms (a norm would remove it)."""
    return _layer("Conv", nd, inputs, outputs, 3, padding=1)


def conv1(nd: int, inputs: int, outputs: int, stride: int = 1) -> nn.Module:
    """A convolution of width 1, without bias, of every ``stride``-th pixel.

    The pixels are picked first (a maximum over windows of one), which is the same map as a strided
    convolution. The strided one corrupts memory in oneDNN's backward pass for channels-last inputs of
    fewer than 8 channels on AVX2 (seen with torch 2.15).
    """
    conv = _layer("Conv", nd, inputs, outputs, 1, bias=False)
    return conv if stride == 1 else nn.Sequential(_layer("MaxPool", nd, 1, stride), conv)


def norm(nd: int, channels: int) -> nn.Module:
    """Batch normalization over the batch and the ``nd`` spatial dimensions."""
    return _layer("BatchNorm", nd, channels)


def max_pool(nd: int) -> nn.Module:
    """Halve the size. ``ceil_mode`` leaves a map of one pixel as it is, so that 8×8 inputs work."""
    return _layer("MaxPool", nd, 2, ceil_mode=True)


def avg_pool(nd: int) -> nn.Module:
    """Halve the size by averaging; odd sizes round up, as a convolution of stride 2 does."""
    return _layer("AvgPool", nd, 2, ceil_mode=True)


def global_pool(nd: int) -> nn.Module:
    """Global average pooling to a size of one."""
    return _layer("AdaptiveAvgPool", nd, 1)


def scaled(base: int, num_features: int) -> int:
    """``base`` channels of a network of width 512, in one of width M: max(1, round(base·M/512)).

    Halves are rounded up. The last layer has 512 and therefore exactly M channels.
    """
    return max(1, (2 * base * num_features + 512) // 1024)


def initialize(trunk: nn.Module, classifier: nn.Linear) -> None:
    """He initialization of the trunk, U(±1/sqrt(M)) for the classifier's weight and bias.

    W ~ N(0, 2/fan_in) in every convolution and hidden layer (He et al. 2015, eq. 10). Batch
    normalizations start as the identity. M is the classifier's number of inputs.
    """
    for module in trunk.modules():
        if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
    bound = classifier.in_features**-0.5
    nn.init.uniform_(classifier.weight, -bound, bound)
    nn.init.uniform_(classifier.bias, -bound, bound)


@contextmanager
def own_random_numbers(seed: int | None) -> Iterator[None]:
    """Inside, torch draws from ``seed`` on the CPU; afterwards its generator is as it was before.

    With ``None`` nothing is changed: torch's own generator is used, as everywhere in torch.
    """
    if seed is None:
        yield
        return
    # `torch.manual_seed` would also seed every GPU; the networks are made on the CPU.
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        yield


class Network(nn.Module):
    """A trunk, global average pooling, and one linear classifier on its M features."""

    def __init__(self, trunk: nn.Module, pool: nn.Module, num_features: int, num_classes: int):
        super().__init__()
        self.num_features = num_features
        self.num_classes = num_classes
        self.trunk = trunk
        self.pool = pool
        self.classifier = nn.Linear(num_features, num_classes)
        initialize(self.trunk, self.classifier)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.pool(self.trunk(x)).flatten(1))
        return logits
