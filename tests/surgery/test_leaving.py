"""After an advice to leave the model, what a script does to a tempered model does nothing: one script, both answers."""

import copy
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import tstar
from tstar import TstarError


class Leave(SimpleNamespace):
    leave = True

    def __float__(self):
        return 1.0


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.fc = nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, x, attention_mask=None):
        return self.fc(self.body(x).relu())


BATCH = torch.randn(16, 6)
HELPERS = {
    "watch": lambda model: tstar.watch(model)(),
    "drive": lambda model: tstar.Schedule.warmup(4.0, steps=2).drive(model).step(),
    "mask_padding": lambda model: tstar.mask_padding(model).remove(),
    "recalibrate": lambda model: tstar.recalibrate(model, [BATCH]),
    "untemper": lambda model: tstar.untemper(model, inplace=True),
    "fold": lambda model: tstar.fold(model, inplace=True),
}


def state_of(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("helper", HELPERS.values(), ids=[*HELPERS])
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_helpers_of_a_tempered_model_do_nothing_to_one_that_was_left(helper, wrapped):
    model = tstar.temper(Masked(), Leave()).eval()
    outer = nn.ModuleDict({"net": model}) if wrapped else model
    outer.forward = model.forward  # as a LightningModule has its own
    before, logits = state_of(model), model(BATCH)
    helper(outer)
    assert [type(m) for m in model.modules()] == [Masked, nn.Linear, nn.Linear]
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert torch.equal(model(BATCH), logits)


@pytest.mark.parametrize("helper", HELPERS.values(), ids=[*HELPERS])
def test_a_model_that_temper_never_saw_is_still_refused(helper):
    with pytest.raises(TstarError, match=r"no tempered head; call tstar\.temper first"):
        helper(Masked())
    tempered = tstar.temper(tstar.temper(Masked(), Leave()), 2.0)  # left once, tempered after all
    plain = tstar.untemper(tempered)
    with pytest.raises(TstarError, match=r"no tempered head; call tstar\.temper first"):
        helper(plain)


def test_what_they_return_says_that_there_is_nothing():
    model = tstar.temper(Masked(), Leave())
    assert tstar.watch(model)() == ()
    assert tstar.recalibrate(model, [BATCH]) is model
    assert tstar.untemper(model) is not model
    assert tstar.untemper(model, inplace=True) is model
    schedule = tstar.Schedule.linear(1.0, 3.0, steps=2).drive(model)
    assert not schedule.drives
    schedule.load_state_dict(schedule.state_dict())  # a training that is resumed
    assert schedule.step() == 2.0
    with pytest.raises(TstarError, match="loader must give batches"):
        tstar.recalibrate(model, 3)
    with pytest.raises(TstarError, match="keyword must name an argument"):
        tstar.mask_padding(model, "mask")


@pytest.mark.filterwarnings("error")
def test_param_groups_of_an_advice_to_leave_are_the_plain_ones():
    model = Masked()
    before = state_of(model)
    own = [{"params": model.body.parameters(), "lr": 0.5}, {"params": model.fc.parameters()}]
    groups = tstar.param_groups(model, Leave(), lr=0.1, weight_decay=1e-4, groups=own)
    assert [(len(g["params"]), g["lr"], g["weight_decay"]) for g in groups] == [
        (2, 0.5, 1e-4),
        (2, 0.1, 1e-4),
    ]
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    with pytest.raises(TstarError, match="backbone is a number"):
        tstar.param_groups(model, Leave(), lr=0.1, backbone="x")


def test_a_copy_and_a_pickle_of_it_were_left_as_well(tmp_path):
    model = tstar.temper(Masked(), Leave())
    torch.save(model, tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)
    for again in (copy.deepcopy(model), loaded):
        assert tstar.watch(again)() == ()
