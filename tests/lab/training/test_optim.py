"""The fused step is the step: in float64, on the networks as they are trained, it gives the same weights."""

import copy

import pytest
import torch
from torch.nn import functional as F

from tstar.lab.models import build
from tstar.lab.training import Config
from tstar.lab.training.layout import channels_last
from tstar.lab.training.optim import lr_factor, make_optimizer

PLAIN = {
    "sgd": lambda p, c: torch.optim.SGD(p, c.lr, momentum=0.9, weight_decay=0.01, foreach=False),
    "adam": lambda p, c: torch.optim.Adam(p, c.lr, weight_decay=0.01, foreach=False),
    "adamw": lambda p, c: torch.optim.AdamW(p, c.lr, weight_decay=0.01, foreach=False),
}


@pytest.mark.parametrize("name", ["vgg9", "resnet10", "pyramidnet10"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
@pytest.mark.parametrize("size", [8, 16])
def test_weights_after_three_steps_are_those_of_the_plain_step(name, optimizer, size):
    config = Config(optimizer=optimizer, lr=0.01, weight_decay=0.01)
    fused = build(name, 5, num_features=64, seed=0).double()
    plain = copy.deepcopy(fused)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 3, size, size, generator=generator, dtype=torch.double)
    y = torch.arange(8) % 5
    with channels_last(fused, images=True):
        made = make_optimizer(fused, config)
        assert made.defaults["fused"]
        _train(fused, made, x, y)
    with channels_last(plain, images=True):
        _train(plain, PLAIN[optimizer](plain.parameters(), config), x, y)
    for (path, mine), other in zip(fused.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-6, msg=path)


def test_gradients_lie_as_their_weights():
    """What the fused step relies on."""
    model = build("vgg9", 5, num_features=64, seed=0)
    with channels_last(model, images=True):
        F.cross_entropy(model(torch.randn(4, 3, 16, 16)), torch.arange(4)).backward()
    assert all(p.grad.stride() == p.stride() for p in model.parameters())


def _train(model, optimizer, x, y):
    model.train()
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def test_one_cycle_is_torchs():
    """Compared with ``OneCycleLR`` at every step of a run."""
    steps, config = 37, Config(schedule="one-cycle", lr=0.4)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 1.0, momentum=0.9)
    theirs = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=steps)
    for step in range(steps):
        assert lr_factor(step, steps, config) == pytest.approx(theirs.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        if step < steps - 1:
            theirs.step()
