"""Channels-last changes the speed and nothing else, also where oneDNN is at fault."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from tstar.lab.training.layout import channels_last

# In a process of its own: without the way around it the gradient is wrong, or memory is corrupted.
GRADIENTS = """
import sys
import torch
from torch import nn
from tstar.lab.training.layout import channels_last

torch.set_num_threads(1)
guarded = sys.argv[1] == "guarded"
for channels in (2, 4, 8, 12, 16):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1, groups=2),
        nn.Conv2d(8, 8, 1, stride=2),
    )
    if channels < 8:
        model = nn.Conv2d(channels, 8, 1, stride=2)
    x = torch.randn(64, channels, 8, 8)
    gradients = []
    for last in (False, True):
        model.zero_grad()
        with channels_last(model, images=last and guarded):
            if last and not guarded:
                model.to(memory_format=torch.channels_last)
            layout = torch.channels_last if last else torch.contiguous_format
            for _ in range(20):
                model(x.contiguous(memory_format=layout)).square().mean().backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    for a, b in zip(*gradients):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
"""


def test_gradients_of_strided_pointwise_convolutions_are_right():
    done = subprocess.run(
        [sys.executable, "-c", GRADIENTS, "guarded"], capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_weights_are_channels_last_and_the_hooks_are_gone_afterwards():
    model = nn.Sequential(nn.Conv2d(4, 8, 3), nn.Conv2d(8, 8, 1, stride=2), nn.Conv2d(8, 8, 1))
    values = [p.detach().clone() for p in model.parameters()]
    with channels_last(model, images=True):
        assert model[0].weight.is_contiguous(memory_format=torch.channels_last)
        assert len(model[1]._forward_pre_hooks) == 1
        assert len(model[2]._forward_pre_hooks) == 0
    assert len(model[1]._forward_pre_hooks) == 0
    for a, b in zip(model.parameters(), values, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(("width", "images"), [(8, False), (4, True)])
def test_vectors_and_narrow_networks_keep_their_layout(width, images):
    model = nn.Sequential(nn.Conv2d(4, 8, 3), nn.Conv2d(8, width, 3))
    strides = model[0].weight.stride()
    with channels_last(model, images=images):
        assert model[0].weight.stride() == strides
        assert not model._forward_pre_hooks
