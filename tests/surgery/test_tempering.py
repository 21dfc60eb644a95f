"""What temper takes besides a number: an advice with its norm and backbone, and a checkpoint to start from."""

import copy
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import tstar
from tstar import TemperedHead, TstarError, TstarWarning
from tstar.surgery.checkpoints import to_plain, to_tempered


def network():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


class Advice(SimpleNamespace):
    def __float__(self):
        return 3.0


def test_the_advice_says_which_norm_and_how_loud():
    head = tstar.temper(network(), Advice(norm=None, backbone=0.5))[2]
    assert head.norm is None
    assert head.backbone.item() == 0.5
    assert head.temperature.item() == 3.0
    own = tstar.temper(network(), Advice(norm=None, backbone=0.5), norm="layer", backbone=2.0)[2]
    assert isinstance(own.norm, nn.LayerNorm)
    assert own.backbone.item() == 2.0
    assert isinstance(tstar.temper(network(), 3.0)[2].norm, nn.BatchNorm1d)
    short = tstar.temper(network(), Advice(training=SimpleNamespace(steps=25)))[2]
    assert short.norm.momentum == pytest.approx(0.4)


def test_the_advice_to_leave_the_model_leaves_it_and_folds_to_itself():
    model = network()
    x = torch.randn(3, 6)
    left = tstar.temper(model, Advice(leave=True))
    assert left is not model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert tstar.temper(model, Advice(leave=True, optimizer=optimizer)) is model
    assert torch.equal(tstar.fold(left.eval())(x), model(x))
    with pytest.raises(TstarError, match="tempered head"):
        tstar.fold(network())


@pytest.mark.parametrize("inplace", [True, False])
def test_a_plain_checkpoint_starts_a_tempered_model(inplace):
    trained, model = network(), network()
    before = copy.deepcopy(model.state_dict())
    tempered = tstar.temper(model, 3.0, state_dict=trained.state_dict(), inplace=inplace)
    assert torch.equal(tempered[2].layer.weight, trained[2].weight)
    assert torch.equal(tempered[0].weight, trained[0].weight)
    if not inplace:
        assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


def test_a_tempered_checkpoint_does_too_and_says_if_it_brings_another_t():
    trained = tstar.temper(network(), 3.0)
    trained.train()(torch.randn(8, 6))
    again = tstar.temper(network(), 3.0, state_dict=trained.state_dict())
    assert all(torch.equal(v, again.state_dict()[k]) for k, v in trained.state_dict().items())
    with pytest.warns(TstarWarning, match=r"T = 3 takes the place of T = 5 at '2'"):
        tstar.temper(network(), 5.0, state_dict=trained.state_dict())
    with pytest.raises(TstarError, match="state_dict must fit the model"):
        tstar.temper(network(), 3.0, state_dict={"0.weight": torch.ones(2)})


def test_keys_go_over_and_back():
    plain = network().state_dict()
    tempered = tstar.temper(network(), 3.0)
    there = to_tempered(plain, "2")
    missing, unexpected = tempered.load_state_dict(there, strict=False)
    assert unexpected == []
    assert all(key.startswith(("2.norm", "2.temperature")) for key in missing)
    back = to_plain(tempered.state_dict())
    assert list(back) == list(plain)
    assert all(torch.equal(back[key], plain[key]) for key in plain)
    alone = nn.Linear(3, 2).state_dict()
    assert set(to_tempered(alone, "")) == {"layer.weight", "layer.bias"}
    with pytest.raises(TstarError, match=r"no fc\.weight"):
        to_tempered(plain, "fc")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("temperature", 0.0, r"2\.temperature must be positive"),
        ("temperature", -1.0, r"2\.temperature must be positive"),
        ("temperature", float("nan"), r"2\.temperature holds NaN or infinity"),
        ("temperature", float("inf"), r"2\.temperature holds NaN"),
        ("norm.running_var", -0.5, r"2\.norm\.running_var holds a negative variance"),
        ("norm.running_mean", float("nan"), r"2\.norm\.running_mean holds NaN"),
        ("layer.weight", float("nan"), r"2\.layer\.weight holds NaN"),
        ("layer.bias", float("inf"), r"2\.layer\.bias holds NaN or infinity"),
    ],
)
def test_numbers_that_are_no_weights_are_not_folded(name, value, message):
    model = tstar.temper(network(), 3.0)
    model.train()(torch.randn(8, 6))
    tensor = model[2].state_dict()[name]
    tensor.reshape(-1)[0] = value
    with pytest.raises(TstarError, match=message):
        tstar.fold(model.eval())
    assert isinstance(model[2], TemperedHead)
