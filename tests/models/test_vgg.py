"""VGG9: eight convolutions, halved between stages."""

import torch
from torch import nn

from tstar.models.vgg import vgg9


def test_sizes_and_widths_of_the_stages():
    x, seen = torch.zeros(2, 3, 32, 32), []
    for layer in vgg9(3, 512).eval():
        x = layer(x)
        if isinstance(layer, nn.Conv2d):
            seen.append((x.shape[1], x.shape[2]))
    assert seen == [
        *((64, 32), (128, 16), (256, 8), (256, 8)),
        *((512, 4), (512, 4), (512, 2), (512, 2)),
    ]
