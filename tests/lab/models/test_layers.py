"""Layers that the networks share; small maps as torch's own convolution has them."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tstar.lab.models.layers import Conv3x3, conv1, conv_small_map, scaled
from tstar.lab.models.networks import pyramid_channels


@pytest.mark.parametrize("features", [1, 2, 7, 64, 100, 513, 1000])
def test_channel_counts_never_vanish_nor_fall(features):
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
def test_the_strided_shortcut_is_a_strided_convolution(nd, size):
    """Pixels are picked first; the map must be that of a convolution with stride 2."""
    layer = conv1(nd, 3, 5, stride=2)
    (weight,) = layer.parameters()
    x = torch.randn(2, 3, *[size] * nd, generator=torch.Generator().manual_seed(0))
    expected = (F.conv1d if nd == 1 else F.conv2d)(x, weight, stride=2)
    assert torch.allclose(layer(x), expected, atol=1e-6)


SIDES = [(1, 1), (1, 2), (2, 1), (2, 2)]


@pytest.mark.parametrize(("height", "width"), SIDES)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_values_and_gradients_are_the_convolutions(height, width, layout):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, 3, height, width, dtype=torch.double, generator=generator)
    weight = torch.randn(4, 3, 3, 3, dtype=torch.double, generator=generator)
    back = torch.randn(5, 4, height, width, dtype=torch.double, generator=generator)
    results = []
    for conv in (conv_small_map, lambda x, w: F.conv2d(x, w, padding=1)):
        inputs = [t.to(memory_format=layout, copy=True).requires_grad_() for t in (x, weight)]
        y = conv(*inputs)
        results.append((y, *torch.autograd.grad(y, inputs, back)))
    for short, long in zip(*results, strict=True):
        torch.testing.assert_close(short, long, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("side", [1, 2, 3, 8])
def test_the_layer_is_a_convolution_at_every_size(side):
    layer = Conv3x3(3, 4).double()
    x = torch.randn(2, 3, side, side, dtype=torch.double)
    expected = F.conv2d(x, layer.weight, padding=1)
    torch.testing.assert_close(layer(x), expected, rtol=1e-12, atol=1e-12)


def test_it_can_be_exported():
    layer, x = Conv3x3(3, 4).eval(), torch.randn(2, 3, 2, 2)
    torch.testing.assert_close(torch.export.export(layer, (x,)).module()(x), layer(x))
