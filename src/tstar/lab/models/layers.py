"""What the networks share: layers for one and two dimensions, channel counts, initialization.

``nd`` is the number of spatial dimensions: 2 for images, 1 for signals.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LARGEST = 2  # pixels a side: from three on, no output pixel sees every input pixel


class ChannelNorm(nn.LayerNorm):
    """Layer normalization over the channels of (B, C, …), at every position."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.movedim(1, -1)).movedim(-1, 1)


def layer(kind: str, nd: int, *sizes: int, **options: Any) -> nn.Module:
    """torch's layer of that kind for ``nd`` dimensions."""
    made: nn.Module = getattr(nn, f"{kind}{nd}d")(*sizes, **options)
    return made


def conv3(nd: int, inputs: int, outputs: int, stride: int = 1) -> nn.Module:
    """A convolution of width 3 that keeps the size (halves it with stride 2), without bias."""
    if nd == 2 and stride == 1:
        return Conv3x3(inputs, outputs)
    return layer("Conv", nd, inputs, outputs, 3, stride=stride, padding=1, bias=False)


def conv1(nd: int, inputs: int, outputs: int, stride: int = 1) -> nn.Module:
    """A convolution of width 1, without bias, of every ``stride``-th pixel.

    The pixels are picked first: the strided convolution corrupts memory in oneDNN's backward pass
    for channels-last inputs of fewer than 8 channels on AVX2 (seen with torch 2.15).
    """
    conv = layer("Conv", nd, inputs, outputs, 1, bias=False)
    return conv if stride == 1 else nn.Sequential(layer("MaxPool", nd, 1, stride), conv)


class Conv3x3(nn.Conv2d):
    """A 3×3 convolution of padding 1, without bias; maps of up to 2×2 pixels are one product.

    The last stages of the networks see such maps, on which most of the kernel lies on padding.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        if max(x.shape[-2:]) <= LARGEST and x.device.type == "cpu":
            return conv_small_map(x, self.weight)
        return F.conv2d(x, self.weight, padding=1)


def conv_small_map(x: Tensor, weight: Tensor) -> Tensor:
    r"""The 3×3 convolution of padding 1 of N×C×H×W maps, H, W ≤ 2, with weights O×C×3×3.

    y_o(p, q) = Σ_{c,i,j} w_{oc}(i − p + 1, j − q + 1)·x_c(i, j): every output pixel sees
    every input pixel, so the whole is one matrix of (H·W·O)×(H·W·C).
    """
    n, _, height, width = x.shape
    kernel = weight.permute(0, 2, 3, 1)  # O×3×3×C, which is how channels-last weights lie
    rows = [
        kernel[:, 1 - p : 1 - p + height, 1 - q : 1 - q + width].flatten(1)
        for p in range(height)
        for q in range(width)
    ]
    y = F.linear(x.permute(0, 2, 3, 1).reshape(n, -1), torch.cat(rows))
    return y.view(n, height, width, len(weight)).permute(0, 3, 1, 2)


def scaled(base: int, num_features: int) -> int:
    """``base`` channels of a network of width 512, in one of width M: max(1, round(base·M/512)).

    Halves are rounded up. The last layer has 512 and therefore exactly M channels.
    """
    return max(1, (2 * base * num_features + 512) // 1024)


class Network(nn.Module):
    """A trunk, global average pooling, and one linear classifier on its M features.

    W ~ N(0, 2/fan_in) in the trunk (He et al. 2015, eq. 10), U(±1/√M) in the classifier.
    """

    def __init__(self, trunk: nn.Module, pool: nn.Module, num_features: int, num_classes: int):
        super().__init__()
        self.num_features = num_features
        self.num_classes = num_classes
        self.trunk = trunk
        self.pool = pool
        self.classifier = nn.Linear(num_features, num_classes)
        for module in trunk.modules():
            if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
        uniform_init(self.classifier, num_features)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.pool(self.trunk(x)).flatten(1))
        return logits


def mlp(in_features: int, num_features: int, depth: int = 2, *, norms: bool = True) -> nn.Module:
    """The trunk for vectors: ``depth`` times linear-BN-ReLU of width M.

    Without ``norms`` the linear layers have a bias in place of the BN, which would remove it.
    """
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs in (in_features, *[num_features] * (depth - 1)):
        layers.append(nn.Linear(inputs, num_features, bias=not norms))
        layers += [nn.BatchNorm1d(num_features)] if norms else []
        layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers)


def uniform_init(output_layer: nn.Module, num_features: int) -> None:
    """U(−1/√M, 1/√M) for weight and bias, the paper's initialization of the output layer."""
    for parameter in output_layer.parameters(recurse=False):
        nn.init.uniform_(parameter, -(num_features**-0.5), num_features**-0.5)


@contextmanager
def own_random_numbers(seed: int | None) -> Iterator[None]:
    """Inside, torch draws from ``seed`` on the CPU, then goes on as before; ``None`` does nothing."""
    if seed is None:
        yield
        return
    # `torch.manual_seed` would also seed every GPU; the networks are made on the CPU.
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        yield
