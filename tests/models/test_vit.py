"""The small ViT, against torch's attention."""

import torch
from torch import nn


def test_attention_mixes_pixels_and_heads_as_the_reference_does() -> None:
    """The block's attention against nn.MultiheadAttention with the same weights."""
    from tstar.models.vit import Attention, head_count

    assert [head_count(width) for width in (1, 7, 16, 32, 48, 64)] == [1, 1, 1, 2, 3, 4]
    block = Attention(32).eval()
    nn.init.zeros_(block.mlp[2].weight)  # type: ignore[arg-type]
    reference = nn.MultiheadAttention(32, 2, bias=False, batch_first=True).eval()
    with torch.no_grad():
        reference.in_proj_weight.copy_(block.qkv.weight.flatten(1))  # type: ignore[union-attr, operator]
        reference.out_proj.weight.copy_(block.out.weight.flatten(1))  # type: ignore[operator]
    x = torch.randn(2, 32, 3, 5, generator=torch.Generator().manual_seed(0))
    tokens = block.norm1(x).flatten(2).transpose(1, 2)
    mixed = reference(tokens, tokens, tokens, need_weights=False)[0]
    assert torch.allclose(block(x), x + mixed.transpose(1, 2).reshape(x.shape), atol=1e-5)
