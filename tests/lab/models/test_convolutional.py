"""Convolutional networks, against the formulas of their blocks."""

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


def test_every_stage_but_the_first_halves_the_size():
    x, sizes = torch.zeros(2, 3, 32, 32), []
    for layer in convolutional.resnet10(3, 16).eval():
        x = layer(x)
        if isinstance(layer, convolutional.BasicBlock):
            sizes.append(x.shape[-1])
    assert sizes == [32, 16, 8, 4]


def test_sizes_and_widths_of_the_stages():
    x, seen = torch.zeros(2, 3, 32, 32), []
    for layer in convolutional.vgg9(3, 512).eval():
        x = layer(x)
        if isinstance(layer, nn.Conv2d):
            seen.append((x.shape[1], x.shape[2]))
    assert seen == [
        *((64, 32), (128, 16), (256, 8), (256, 8)),
        *((512, 4), (512, 4), (512, 2), (512, 2)),
    ]


def test_pyramid_shortcut_pads_with_zero_channels():
    block = convolutional.PyramidBlock(2, 3, 5, stride=2).eval()
    nn.init.zeros_(block.norm3.weight)
    x = torch.arange(2 * 3 * 4 * 4.0).view(2, 3, 4, 4)
    out = block(x)
    means = x.view(2, 3, 2, 2, 2, 2).mean((3, 5))
    assert torch.allclose(out[:, :3], means)
    assert torch.equal(out[:, 3:], torch.zeros(2, 2, 2, 2))


def test_four_stages_of_scaled_widths_with_biases_and_no_norm():
    trunk = convolutional.cnn4(3, 256)
    convolutions = [module for module in trunk if isinstance(module, nn.Conv2d)]
    assert [layer.out_channels for layer in convolutions] == [32, 64, 128, 256]
    assert all(layer.bias is not None for layer in convolutions)
    assert not any("Norm" in type(module).__name__ for module in trunk)
    assert trunk(torch.zeros(2, 3, 16, 16)).shape == (2, 256, 2, 2)


def test_a_convnext_block_is_its_formula():
    block = convolutional.ConvNextBlock(4).eval()
    x = torch.randn(2, 4, 9, 9, generator=torch.Generator().manual_seed(0))
    mixed = F.conv2d(x, block.mix.weight, padding=3, groups=4).movedim(1, -1)
    normed = F.layer_norm(mixed, (4,), block.norm.weight, block.norm.bias, block.norm.eps)
    first, _, last = block.mlp
    (w1,), (w2,) = first.parameters(), last.parameters()
    inner = F.gelu(normed @ w1.flatten(1).T) @ w2.flatten(1).T
    assert torch.allclose(block(x), x + inner.movedim(-1, 1), atol=1e-5)


def test_two_stages_of_blocks():
    trunk = convolutional.convnext4(3, 10, depth=3)
    assert sum(isinstance(layer, convolutional.ConvNextBlock) for layer in trunk) == 6
    assert [m.stride for m in trunk if isinstance(m, nn.Conv2d)] == [(2, 2), (2, 2)]
