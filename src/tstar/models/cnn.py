"""CNN4: four convolutions and no norm anywhere, as networks were before batch normalization."""

from __future__ import annotations

from torch import nn

from tstar.models.layers import biased_conv3, max_pool, scaled

_WIDTHS = (64, 128, 256, 512)


def cnn4(in_channels: int, num_features: int, nd: int = 2, depth: int = 1) -> nn.Module:
    """The trunk: four conv-ReLU stages, widths scaled by M/512, halved between stages.

    ``depth`` is the number of layers per stage.
    """
    layers: list[nn.Module] = []
    channels = in_channels
    for stage, base in enumerate(_WIDTHS):
        if stage:
            layers.append(max_pool(nd))
        for _ in range(depth):
            outputs = scaled(base, num_features)
            layers += [biased_conv3(nd, channels, outputs), nn.ReLU(inplace=True)]
            channels = outputs
    return nn.Sequential(*layers)
