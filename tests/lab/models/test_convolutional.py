"""Convolutional networks, against the formulas of their blocks."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tstar.lab.models import convolutional


def test_a_block_adds_its_input():
    block = convolutional.BasicBlock(2, 3, 3, stride=1).eval()
    nn.init.zeros_(block.norm2.weight)
    x = torch.randn(2, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(block(x), F.relu(x))
    assert isinstance(block.shortcut, nn.Identity)


@pytest.mark.parametrize(
    ("make", "kind", "widths", "sizes"),
    [
        (convolutional.resnet10, convolutional.BasicBlock, [2, 4, 8, 16], [32, 16, 8, 4]),
        (convolutional.pyramidnet10, convolutional.PyramidBlock, [6, 9, 13, 16], [32, 16, 8, 4]),
        (convolutional.vgg9, nn.Conv2d, [2, 4, 8, 8, 16, 16, 16, 16], [32, 16, 8, 8, 4, 4, 2, 2]),
        (convolutional.cnn4, nn.Conv2d, [2, 4, 8, 16], [32, 16, 8, 4]),
    ],
)
def test_sizes_and_widths_of_the_stages(make, kind, widths, sizes):
    x, seen = torch.zeros(2, 3, 32, 32), []
    for layer in make(3, 16).eval():
        x = layer(x)
        if isinstance(layer, kind):
            seen.append((x.shape[1], x.shape[2]))
    assert seen == [*zip(widths, sizes, strict=True)]


def test_pyramid_shortcut_pads_with_zero_channels():
    block = convolutional.PyramidBlock(2, 3, 5, stride=2).eval()
    nn.init.zeros_(block.norm3.weight)
    x = torch.arange(2 * 3 * 4 * 4.0).view(2, 3, 4, 4)
    out = block(x)
    means = x.view(2, 3, 2, 2, 2, 2).mean((3, 5))
    assert torch.allclose(out[:, :3], means)
    assert torch.equal(out[:, 3:], torch.zeros(2, 2, 2, 2))


def test_a_convnext_block_is_its_formula():
    block = convolutional.ConvNextBlock(4).eval()
    x = torch.randn(2, 4, 9, 9, generator=torch.Generator().manual_seed(0))
    mixed = F.conv2d(x, block.mix.weight, padding=3, groups=4).movedim(1, -1)
    normed = F.layer_norm(mixed, (4,), block.norm.weight, block.norm.bias, block.norm.eps)
    first, _, last = block.mlp
    (w1,), (w2,) = first.parameters(), last.parameters()
    inner = F.gelu(normed @ w1.flatten(1).T) @ w2.flatten(1).T
    assert torch.allclose(block(x), x + inner.movedim(-1, 1), atol=1e-5)
