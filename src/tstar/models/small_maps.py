"""Convolutions of maps of one or two pixels a side, as one matrix product.

The last stages of the networks see such maps: one pixel at inputs of 16×16, two at 32×32. Most of a
3×3 kernel lies on padding there, and CPU libraries do the work all the same.
"""

from __future__ import annotations

import torch
import torch.fx
from torch import Tensor, nn
from torch.nn import functional as F

LARGEST = 2  # pixels a side: from three on, no output pixel sees every input pixel


class Conv3x3(nn.Conv2d):
    """A 3×3 convolution of padding 1, without bias; small maps on a CPU take the short way."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return _conv(x, self.weight)


@torch.fx.wrap  # one call in a traced graph: which way is taken depends on the input's size
def _conv(x: Tensor, weight: Tensor) -> Tensor:
    # TorchScript does not compile the other branch, and could not.
    if torch.jit.is_scripting():  # type: ignore[attr-defined]
        y = F.conv2d(x, weight, padding=1)
    else:
        small = max(x.shape[-2:]) <= LARGEST and x.device.type == "cpu"
        y = conv_small_map(x, weight) if small else F.conv2d(x, weight, padding=1)
    return y


def conv_small_map(x: Tensor, weight: Tensor) -> Tensor:
    r"""The 3×3 convolution of padding 1 of N×C×H×W maps, H, W ≤ 2, with weights O×C×3×3.

    y_o(p, q) = Σ_{c,i,j} w_{oc}(i − p + 1, j − q + 1)·x_c(i, j): every output pixel sees every input
    pixel, so the whole is a matrix of (H·W·O)×(H·W·C), a fraction H·W/9 of each kernel.
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
