"""VGG9: the eight convolutions of VGG configuration A, batch-normalized, and one linear layer."""

from __future__ import annotations

from torch import nn

from tstar.models.layers import conv3, max_pool, norm, scaled

# Configuration A of Simonyan & Zisserman (2015) without its last pooling: global average pooling
# takes that place, so that inputs of 16 pixels still fit.
_STAGES = ((64,), (128,), (256, 256), (512, 512), (512, 512))


def vgg9(in_channels: int, num_features: int, nd: int = 2, depth: int = 1) -> nn.Module:
    """The trunk: eight conv-BN-ReLU layers, widths scaled by M/512, halved between stages.

    ``depth`` repeats every layer so many times.
    """
    layers: list[nn.Module] = []
    channels = in_channels
    for stage, widths in enumerate(_STAGES):
        if stage:
            layers.append(max_pool(nd))
        for base in (width for width in widths for _ in range(depth)):
            outputs = scaled(base, num_features)
            layers += [conv3(nd, channels, outputs), norm(nd, outputs), nn.ReLU(inplace=True)]
            channels = outputs
    return nn.Sequential(*layers)
