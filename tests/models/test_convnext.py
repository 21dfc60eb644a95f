"""The small ConvNeXt, against its formula."""

import torch
from torch import nn
from torch.nn import functional as F

from tstar.models.convnext import Block, convnext4


def test_a_block_is_its_formula():
    block = Block(4).eval()
    x = torch.randn(2, 4, 9, 9, generator=torch.Generator().manual_seed(0))
    mixed = F.conv2d(x, block.mix.weight, padding=3, groups=4).movedim(1, -1)
    normed = F.layer_norm(mixed, (4,), block.norm.weight, block.norm.bias, block.norm.eps)
    first, _, last = block.mlp
    (w1,), (w2,) = first.parameters(), last.parameters()
    inner = F.gelu(normed @ w1.flatten(1).T) @ w2.flatten(1).T
    assert torch.allclose(block(x), x + inner.movedim(-1, 1), atol=1e-5)


def test_two_stages_of_blocks():
    trunk = convnext4(3, 10, depth=3)
    assert sum(isinstance(layer, Block) for layer in trunk) == 6
    assert [m.stride for m in trunk if isinstance(m, nn.Conv2d)] == [(2, 2), (2, 2)]
