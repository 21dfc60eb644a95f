"""ResNet10, against the formula of its block."""

import torch
from torch import nn
from torch.nn import functional as F

from tstar.models.resnet import BasicBlock, resnet10


def test_a_block_adds_its_input():
    block = BasicBlock(2, 3, 3, stride=1).eval()
    nn.init.zeros_(block.norm2.weight)
    x = torch.randn(2, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(block(x), F.relu(x))
    assert isinstance(block.shortcut, nn.Identity)


def test_every_stage_but_the_first_halves_the_size():
    x, sizes = torch.zeros(2, 3, 32, 32), []
    for layer in resnet10(3, 16).eval():
        x = layer(x)
        if isinstance(layer, BasicBlock):
            sizes.append(x.shape[-1])
    assert sizes == [32, 16, 8, 4]
