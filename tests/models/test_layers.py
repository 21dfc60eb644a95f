"""Layers that the networks share."""

import numpy as np
import pytest
import torch

from tstar.models.layers import conv1, scaled
from tstar.models.pyramidnet import pyramid_channels


@pytest.mark.parametrize("features", [*range(1, 70), 100, 513, 1000])
def test_channel_counts_never_vanish_nor_fall(features: int) -> None:
    counts = [scaled(base, features) for base in (64, 128, 256, 512)]
    assert counts == sorted(counts)
    assert counts[0] >= 1
    assert counts[-1] == features
    growth = pyramid_channels(features)
    assert growth == sorted(growth)
    assert growth[-1] == features
    steps = np.diff(growth)
    assert steps.max() - steps.min() <= 1  # additive: equal steps up to rounding


@pytest.mark.parametrize("nd", [1, 2])
@pytest.mark.parametrize("size", [7, 8])
def test_the_strided_shortcut_is_a_strided_convolution(nd: int, size: int) -> None:
    """Pixels are picked first; the map must be that of a convolution with stride 2."""
    from torch.nn import functional as F

    layer = conv1(nd, 3, 5, stride=2)
    (weight,) = layer.parameters()
    x = torch.randn(2, 3, *[size] * nd, generator=torch.Generator().manual_seed(0))
    expected = (F.conv1d if nd == 1 else F.conv2d)(x, weight, stride=2)
    assert torch.allclose(layer(x), expected, atol=1e-6)
