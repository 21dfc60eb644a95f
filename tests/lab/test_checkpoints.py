"""Checkpoints are folded without the model's code."""

import pytest
import torch
from torch import nn

import tstar
from tstar import TstarError
from tstar.lab.checkpoints import fold_state_dict, tempered_prefixes
from tstar.lab.cli.fold_commands import find_state_dict


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
def test_states_of_a_wrong_kind_name_the_head(change):
    with pytest.raises(TstarError, match=r"\b2\b"):
        fold_state_dict({**trained().state_dict(), **change, 3: "a key that is no name"})


def test_the_tempered_heads_of_a_checkpoint():
    state = trained().state_dict()
    assert tempered_prefixes(state) == ["2."]
    assert tempered_prefixes({"temperature": 1, "layer.weight": 2}) == [""]
    assert tempered_prefixes({"2.temperature": 1, 3: 4}) == []  # no layer beside it
    assert tempered_prefixes({"a_temperature": 1, "a_layer.weight": 1}) == []
    with pytest.raises(TstarError, match="No tempered head found"):
        fold_state_dict(network().state_dict())


def test_a_head_alone_two_heads_and_another_epsilon():
    model = trained()
    alone = fold_state_dict(model[2].state_dict())
    assert list(alone) == ["weight", "bias"]
    both = {**model.state_dict(), **{f"9.{k}": v for k, v in model[2].state_dict().items()}}
    folded = fold_state_dict(both)
    assert [*folded] == ["0.weight", "0.bias", "2.weight", "2.bias", "9.weight", "9.bias"]
    assert torch.equal(folded["9.weight"], folded["2.weight"])
    model[2].norm.eps = 0.5
    wider = fold_state_dict(model.state_dict(), eps=0.5)
    assert torch.equal(wider["2.weight"], tstar.fold(model).state_dict()["2.weight"])
    assert not torch.allclose(wider["2.weight"], folded["2.weight"])


def test_a_head_without_norm_or_bias_folds():
    bare = tstar.temper(nn.Sequential(nn.Linear(6, 4, bias=False)), 2.0, norm=None, head="0")
    folded = fold_state_dict(bare.state_dict())
    assert [*folded] == ["0.weight"]
    assert torch.equal(folded["0.weight"], bare[0].layer.weight / 2)


def test_heads_that_cannot_fold_are_refused():
    wide = trained().state_dict() | {"2.layer.weight": torch.ones(4, 8, 3)}
    with pytest.raises(TstarError, match=r"of kernel size 1.*got Conv1d"):
        fold_state_dict(wide)


def test_the_state_dict_in_what_a_trainer_saved():
    state, plain = trained().state_dict(), network().state_dict()
    assert find_state_dict(state) is state
    assert find_state_dict({"epoch": 3, "model": state, "other": plain}) is state
    assert find_state_dict({"a": state, "b": state}, "b") is state
    nothing = {"epoch": 3}
    assert find_state_dict(nothing) is nothing  # folding says what it lacks
    with pytest.raises(TstarError, match=r"Found 2 tempered state dicts \(\['a', 'b'\]\)"):
        find_state_dict({"a": state, "b": state})
    with pytest.raises(TstarError, match=r"got int; the checkpoint has \['epoch'\]"):
        find_state_dict({"epoch": 3}, "epoch")
    with pytest.raises(
        TstarError, match="must be a state dict, or a dict that holds one, got list"
    ):
        find_state_dict([state])
