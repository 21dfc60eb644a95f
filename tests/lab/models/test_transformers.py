"""Networks of patches, against torch's attention and the axes that they mix."""

import torch
from torch import nn

from tstar.lab.models.transformers import Attention, Mixer, head_count, mixer4


def test_attention_mixes_pixels_and_heads_as_the_reference_does():
    """The block's attention against nn.MultiheadAttention with the same weights."""
    assert [head_count(width) for width in (1, 7, 16, 32, 48, 64)] == [1, 1, 1, 2, 3, 4]
    block = Attention(32).eval()
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
    grid = mixer4(5, 5)[1]
    assert torch.allclose(grid(x), x.view(2, 5, 4, 2, 4, 2).mean((3, 5)))
    assert grid(x[:, :, :3, :2]).shape == (2, 5, 4, 4)


def test_each_half_mixes_one_axis():
    block = Mixer(6).eval()
    x = torch.randn(1, 6, 4, 4, generator=torch.Generator().manual_seed(0))
    moved = x.clone()
    moved[0, :, 0, 0] += torch.arange(6.0)  # another pixel, which the norm of its own sees
    nn.init.zeros_(block.tokens[2].weight)
    changed = (block(moved) - block(x)).abs().sum(1)[0] > 1e-6
    assert changed.sum() == 1  # without the tokens' half only that pixel changes
    nn.init.ones_(block.tokens[2].weight)
    assert ((block(moved) - block(x)).abs().sum(1)[0] > 1e-6).all()
