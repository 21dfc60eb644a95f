"""A run that goes on from its checkpoint."""

import dataclasses

import pytest
import torch
from torch import nn

from tstar.lab.models import build
from tstar.lab.training import Config, train
from tstar.lab.training.loop import Checkpoint

FULL = Config(epochs=3, batch_size=64, lr=0.05, clip_norm=1.0, nesterov=True, warmup=0.1)


class Killed(Exception):
    pass


class Dying(Checkpoint):
    """Due at every step; dies after the n-th state was written."""

    def __init__(self, path, n):
        super().__init__(path, 0.0)
        self.left = n

    def save(self, state):
        super().save(state)
        self.left -= 1
        if not self.left:
            raise Killed


def model():
    network = build("resnet10", 10, num_features=16, in_channels=1, seed=0)
    network.trunk = nn.Sequential(network.trunk, nn.Dropout(0.2))  # draws from the global generator
    return network


def same(a, b):
    ignored = ("seconds", "images_per_second")
    return all(
        getattr(a, f.name) == getattr(b, f.name)
        for f in dataclasses.fields(a)
        if f.name not in ignored
    )


@pytest.mark.parametrize("after", [2, 5, 8])  # five steps in each epoch: inside, at the end of one
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_it_goes_on_bit_for_bit(data, tmp_path, after, optimizer):
    config = dataclasses.replace(FULL, optimizer=optimizer, lr=0.05 if optimizer == "sgd" else 1e-3)
    whole, path = model(), tmp_path / "run.pt"
    expected = train(whole, data, config, seed=3)
    with pytest.raises(Killed):
        train(model(), data, config, seed=3, checkpoint=Dying(path, after))
    assert path.exists()
    again = model()
    result = train(again, data, config, seed=3, checkpoint=Checkpoint(path, 1e9))
    assert same(result, expected)
    for (name, a), b in zip(again.state_dict().items(), whole.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    assert path.exists()  # until the result is stored


@pytest.mark.parametrize("content", ["half", "empty", "other network", "no optimizer"])
def test_a_damaged_checkpoint_starts_the_run_anew(data, tmp_path, content):
    path, config = tmp_path / "run.pt", dataclasses.replace(FULL, epochs=1)
    with pytest.raises(Killed):
        train(model(), data, config, seed=3, checkpoint=Dying(path, 2))
    state = torch.load(path)
    if content == "half":
        path.write_bytes(path.read_bytes()[:1000])
    elif content == "empty":
        torch.save({}, path)
    elif content == "other network":
        torch.save(state | {"modules": {"0.weight": torch.ones(3)}}, path)
    else:  # which is read last, when the weights are there already
        torch.save(state | {"optimizer": {}}, path)
    result = train(model(), data, config, seed=3, checkpoint=Checkpoint(path, 1e9))
    assert same(result, train(model(), data, config, seed=3))
