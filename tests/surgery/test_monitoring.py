"""An optimizer that does not reach the tempered head is joined, refused or reported, never trained past in silence."""

import copy
import warnings
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tstar
from tstar import TstarError, TstarWarning

X, Y = torch.randn(16, 6), torch.arange(16) % 4


def network(bias=True):
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4, bias=bias))


def steps(model, *optimizers, n=3, x=X, y=Y):
    for _ in range(n):
        for optimizer in optimizers:
            optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        for optimizer in optimizers:
            optimizer.step()


def advised(optimizer):
    """An advice that was read from a live optimizer, as ``recommend(model, optimizer=optimizer)`` gives."""

    class Advice(SimpleNamespace):
        def __float__(self):
            return 4.0

    return Advice(optimizer=optimizer)


@pytest.mark.parametrize("how", ["named", "advised"])
def test_a_live_optimizer_trains_norm_and_head(how):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if how == "named":
        tempered = tstar.temper(model, 4.0, optimizer=optimizer)
    else:
        tempered = tstar.temper(model, advised(optimizer))
    assert tempered is model
    before = copy.deepcopy(model.state_dict())
    steps(model, optimizer)
    after = model.state_dict()
    moved = {key for key in before if not torch.equal(before[key], after[key])}
    assert {key for key, _ in model.named_parameters()} <= moved
    torch.testing.assert_close(tstar.fold(model.eval())(X), model(X))


def test_the_norm_joins_the_group_of_the_heads_bias():
    """Where biases have a group without weight decay, norms belong there too; the schedule's groups stay."""
    model = network()
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1]},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    tstar.temper(model, 4.0, optimizer=optimizer)
    assert [len(group["params"]) for group in optimizer.param_groups] == [2, 4]
    steps(model, optimizer)
    scheduler.step()
    bare = network(bias=False)
    one = torch.optim.SGD(bare.named_parameters(), lr=0.1)
    tstar.temper(bare, 4.0, optimizer=one)
    assert one.param_groups[0]["param_names"][-2:] == ["2.norm.weight", "2.norm.bias"]


def test_an_optimizer_of_another_model_is_refused_or_ignored():
    other = torch.optim.SGD(network().parameters(), lr=0.1)
    with pytest.raises(TstarError, match=r"after tstar\.temper"):
        tstar.temper(network(), 4.0, optimizer=other)
    model = network()
    assert tstar.temper(model, advised(other)) is not model
    with pytest.raises(TstarError, match="would not be trained"):
        tstar.temper(model, 4.0, optimizer=torch.optim.SGD(model.parameters(), 0.1), inplace=False)
    with pytest.raises(TstarError, match="torch optimizer"):
        tstar.temper(model, 4.0, optimizer=3)


def test_an_optimizer_that_was_built_before_is_reported_at_its_first_step():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tempered = tstar.temper(model, 4.0)
    with pytest.warns(TstarWarning, match=r"does not train the tempered head.*layer\.weight"):
        steps(tempered, optimizer, n=1)


def test_a_norm_that_no_optimizer_holds_is_reported():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    tstar.temper(model, 4.0, inplace=True)
    with pytest.warns(TstarWarning, match=r"\(norm\.weight, norm\.bias\)"):
        steps(model, optimizer, n=2)


def test_several_optimizers_share_a_head_without_a_word():
    """Matrices to one, vectors to another, as with Muon; and a body apart from its head."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for split in (lambda n, p: p.ndim > 1, lambda n, p: n.startswith("0.")):
            model = tstar.temper(network(), 4.0)
            named = list(model.named_parameters())
            one = torch.optim.SGD([p for n, p in named if split(n, p)], lr=0.1)
            two = torch.optim.Adam([p for n, p in named if not split(n, p)], lr=0.01)
            steps(model, one, two)


def test_the_hook_goes_when_nothing_is_awaited():
    from tstar.surgery import monitoring

    monitoring._awaiting.clear()
    model = tstar.temper(network(), 4.0)
    assert monitoring._hooks
    steps(model, torch.optim.SGD(model.parameters(), lr=0.1), n=2)
    assert not monitoring._hooks
    assert not monitoring._awaiting


def test_a_teacher_and_an_idle_model_are_no_concern():
    teacher = tstar.temper(network(), 4.0).eval().requires_grad_(False)
    idle = tstar.temper(network(), 4.0)
    student = network()
    steps(student, torch.optim.SGD(student.parameters(), lr=0.1))
    assert teacher(X).shape == idle(X).shape


def test_a_head_that_was_frozen_after_tempering_is_reported():
    """What LoRA without a task type does to a model that was tempered before."""
    model = tstar.temper(network(), 4.0)
    model[2].requires_grad_(False)
    with pytest.warns(TstarWarning, match="frozen after it was tempered"):
        steps(model, torch.optim.SGD(model[0].parameters(), lr=0.1), n=2)


def of_one(model, optimizer):
    for x, y in zip(X, Y, strict=True):
        optimizer.zero_grad()
        F.cross_entropy(model(x[None]), y[None]).backward()
        optimizer.step()


def frozen_norms(model, optimizer):
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.eval()
    steps(model, optimizer)


@pytest.mark.parametrize("train", [of_one, frozen_norms])
def test_a_norm_that_never_learns_is_reported_at_the_end_of_the_first_epoch(train):
    model = tstar.temper(network(), 4.0).train()
    train(model, torch.optim.SGD(model.parameters(), lr=0.01))
    with pytest.warns(TstarWarning, match="the norm before it has seen no batch"):
        model.eval()
    model.train()
    model.eval()  # said once


def test_a_norm_that_learns_says_nothing():
    model = tstar.temper(network(), 4.0).train()
    model.eval()
    steps(model.train(), torch.optim.SGD(model.parameters(), lr=0.01))
    model.eval()
