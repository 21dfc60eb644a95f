"""PyramidNet10: its shortcut and its additive widths."""

import torch
from torch import nn


def test_pyramid_shortcut_pads_with_zero_channels() -> None:
    from tstar.models.pyramidnet import PyramidBlock

    block = PyramidBlock(2, 3, 5, stride=2).eval()
    nn.init.zeros_(block.norm3.weight)  # type: ignore[arg-type]
    x = torch.arange(2 * 3 * 4 * 4.0).view(2, 3, 4, 4)
    out = block(x)
    means = x.view(2, 3, 2, 2, 2, 2).mean((3, 5))
    assert torch.allclose(out[:, :3], means)
    assert torch.equal(out[:, 3:], torch.zeros(2, 2, 2, 2))
