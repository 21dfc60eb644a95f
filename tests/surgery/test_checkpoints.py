"""State dicts alone: from plain keys to tempered ones and back, and what is refused by name."""

import pytest
import torch
from torch import nn

import tstar
from tstar import TstarError
from tstar.surgery.checkpoints import fold_state_dict


def network():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


def trained():
    model = tstar.temper(network(), 3.0)
    model.train()(torch.randn(16, 6))
    return model.eval()


def test_it_folds_as_the_model_does():
    model = trained()
    mine, own = fold_state_dict(model.state_dict()), tstar.fold(model).state_dict()
    assert list(mine) == list(own)
    assert all(torch.equal(mine[key], own[key]) for key in own)


@pytest.mark.parametrize(
    "change",
    [
        {"2.temperature": torch.ones(3)},
        {"2.temperature": torch.zeros(())},
        {"2.temperature": 5.0},
        {"2.layer.weight": None},
        {"2.layer.weight": "W"},
        {"2.layer.weight": torch.ones(4, 8, dtype=torch.int64)},
        {"2.layer.weight": torch.ones(4, 8).to_sparse()},
        {"2.layer.weight": torch.ones(1, 1).expand(10**6, 10**6)},
        {"2.layer.weight": torch.ones(())},
        {"2.norm.running_var": torch.full((8,), -1.0)},
        {"2.norm.running_mean": torch.ones(9)},
        {"2.norm.running_mean": torch.full((8,), float("nan"))},
        {"2.layer.bias": torch.ones(5)},
        {"2.layer.bias": torch.full((4,), float("inf"))},
    ],
)
def test_states_of_a_wrong_kind_name_the_tensor(change):
    (name,) = change
    with pytest.raises(TstarError, match=name.rpartition(".")[2]):
        fold_state_dict({**trained().state_dict(), **change, 3: "a key that is no name"})
