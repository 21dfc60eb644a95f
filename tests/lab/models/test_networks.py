"""The networks' trunks, against the formulas of their blocks and torch's attention."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tstar.lab.models import networks


def test_a_block_adds_its_input():
    block = networks.BasicBlock(2, 3, 3, stride=1).eval()
    nn.init.zeros_(block.norm2.weight)
    x = torch.randn(2, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(block(x), F.relu(x))
    assert isinstance(block.shortcut, nn.Identity)


@pytest.mark.parametrize(
    ("make", "kind", "widths", "sizes"),
    [
        (networks.resnet10, networks.BasicBlock, [2, 4, 8, 16], [32, 16, 8, 4]),
        (networks.pyramidnet10, networks.PyramidBlock, [6, 9, 13, 16], [32, 16, 8, 4]),
        (networks.vgg9, nn.Conv2d, [2, 4, 8, 8, 16, 16, 16, 16], [32, 16, 8, 8, 4, 4, 2, 2]),
        (networks.cnn4, nn.Conv2d, [2, 4, 8, 16], [32, 16, 8, 4]),
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
    block = networks.PyramidBlock(2, 3, 5, stride=2).eval()
    nn.init.zeros_(block.norm3.weight)
    x = torch.arange(2 * 3 * 4 * 4.0).view(2, 3, 4, 4)
    out = block(x)
    means = x.view(2, 3, 2, 2, 2, 2).mean((3, 5))
    assert torch.allclose(out[:, :3], means)
    assert torch.equal(out[:, 3:], torch.zeros(2, 2, 2, 2))


def test_a_convnext_block_is_its_formula():
    block = networks.ConvNextBlock(4).eval()
    x = torch.randn(2, 4, 9, 9, generator=torch.Generator().manual_seed(0))
    mixed = F.conv2d(x, block.mix.weight, padding=3, groups=4).movedim(1, -1)
    normed = F.layer_norm(mixed, (4,), block.norm.weight, block.norm.bias, block.norm.eps)
    first, _, last = block.mlp
    (w1,), (w2,) = first.parameters(), last.parameters()
    inner = F.gelu(normed @ w1.flatten(1).T) @ w2.flatten(1).T
    assert torch.allclose(block(x), x + inner.movedim(-1, 1), atol=1e-5)


def test_attention_mixes_pixels_and_heads_as_the_reference_does():
    """The block's attention against nn.MultiheadAttention with the same weights."""
    assert [networks.head_count(width) for width in (1, 7, 16, 32, 48, 64)] == [1, 1, 1, 2, 3, 4]
    block = networks.Attention(32).eval()
    nn.init.zeros_(block.mlp[2].weight)
    reference = nn.MultiheadAttention(32, 2, bias=False, batch_first=True).eval()
    with torch.no_grad():
        reference.in_proj_weight.copy_(block.qkv.weight.flatten(1))
        reference.out_proj.weight.copy_(block.out.weight.flatten(1))
    x = torch.randn(2, 32, 3, 5, generator=torch.Generator().manual_seed(0))
    tokens = block.norm1(x).flatten(2).transpose(1, 2)
    mixed = reference(tokens, tokens, tokens, need_weights=False)[0]
    assert torch.allclose(block(x), x + mixed.transpose(1, 2).reshape(x.shape), atol=1e-5)


def test_maps_of_any_size_come_to_one_grid():
    x = torch.randn(2, 5, 8, 8, generator=torch.Generator().manual_seed(0))
    grid = networks.mixer4(5, 5)[1]
    assert torch.allclose(grid(x), x.view(2, 5, 4, 2, 4, 2).mean((3, 5)))
    assert grid(x[:, :, :3, :2]).shape == (2, 5, 4, 4)


def test_each_half_mixes_one_axis():
    block = networks.Mixer(6).eval()
    x = torch.randn(1, 6, 4, 4, generator=torch.Generator().manual_seed(0))
    moved = x.clone()
    moved[0, :, 0, 0] += torch.arange(6.0)  # another pixel, which the norm of its own sees
    nn.init.zeros_(block.tokens[2].weight)
    changed = (block(moved) - block(x)).abs().sum(1)[0] > 1e-6
    assert changed.sum() == 1  # without the tokens' half only that pixel changes
    nn.init.ones_(block.tokens[2].weight)
    assert ((block(moved) - block(x)).abs().sum(1)[0] > 1e-6).all()
