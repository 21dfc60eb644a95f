"""The short way of small maps gives what torch's own convolution gives."""

import pytest
import torch
from torch.nn import functional as F

from tstar.models import build
from tstar.models.small_maps import LARGEST, Conv3x3, conv_small_map

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


def test_only_small_maps_take_the_short_way(monkeypatch):
    taken = []
    monkeypatch.setattr(
        "tstar.models.small_maps.conv_small_map",
        lambda x, weight: taken.append(x.shape[-1]) or conv_small_map(x, weight),
    )
    layer = Conv3x3(3, 4)
    for side in (1, 2, 3, 16):
        layer(torch.zeros(1, 3, side, side))
    assert taken == [1, LARGEST]


def test_vgg9_reaches_small_maps():
    """At 16×16 the last two stages of VGG9 have maps of two pixels and of one."""
    seen = []
    model = build("vgg9", 10, num_features=32, in_channels=3, seed=0)
    for module in model.modules():
        if isinstance(module, Conv3x3):
            module.register_forward_hook(lambda m, inputs, y: seen.append(inputs[0].shape[-1]))
    model(torch.zeros(2, 3, 16, 16))
    assert seen == [16, 8, 4, 4, 2, 2, 1, 1]


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "kind", [lambda m, x: torch.export.export(m, x).module(), lambda m, x: torch.jit.script(m)]
)
def test_it_can_be_exported(kind):
    layer, x = Conv3x3(3, 4).eval(), torch.randn(2, 3, 2, 2)
    torch.testing.assert_close(kind(layer, (x,))(x), layer(x))
