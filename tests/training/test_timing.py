"""How long a step takes, measured on a throwaway copy."""

import time

import torch
from torch import nn

from tstar.training import Config
from tstar.training.parts import make_parts
from tstar.training.timing import step_seconds


class Slow(nn.Module):
    """A model whose forward pass takes a known time."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        self.calls = []

    def forward(self, x):
        self.calls.append(len(x))
        time.sleep(0.05)
        return self.layers(x)


def test_the_time_of_a_step_is_measured_and_nothing_changes(data):
    config = Config(batch_size=32, epochs=1)
    model = Slow()
    before = model.layers[1].weight.detach().clone()
    state = torch.get_rng_state()
    seconds = step_seconds(model, make_parts(data, config, 0), config)
    assert 0.05 <= seconds < 5
    assert torch.equal(model.layers[1].weight, before)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.calls == []  # a copy was trained
