"""T as initialization, rate and decay of the head."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tstar
from tstar.errors import TstarError
from tstar.groups import factors, param_groups, set_rate

T = 6.25


STEPS = 100


class Divided(nn.Module):
    """The definition, written out: the logits of a plain model divided by T."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x) / T


def network(bias=True):
    torch.manual_seed(3)
    layers = (nn.Linear(6, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 5, bias=bias))
    return nn.Sequential(*layers).double()


OPTIMIZERS: dict[str, tuple[str, Callable[[Any], torch.optim.Optimizer]]] = {
    "sgd": ("sgd", lambda groups: torch.optim.SGD(groups)),
    "sgd with momentum": ("sgd", lambda groups: torch.optim.SGD(groups, momentum=0.9)),
    "nesterov": ("sgd", lambda groups: torch.optim.SGD(groups, momentum=0.9, nesterov=True)),
    "adamw": ("adamw", lambda groups: torch.optim.AdamW(groups)),
    "adam with L2": ("adam", lambda groups: torch.optim.Adam(groups)),
    "amsgrad": ("adamw", lambda groups: torch.optim.AdamW(groups, amsgrad=True)),
}


SCHEDULES: dict[str, Callable[[int], float]] = {
    "constant": lambda step: 1.0,
    "cosine": lambda step: 0.5 * (1 + math.cos(math.pi * step / STEPS)),
}


def trained(model, optimizer, schedule, clip=0):
    """The logits on fresh data after every tenth of the steps."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 6, generator=generator, dtype=torch.float64)
    y = torch.randint(5, (64,), generator=generator)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    snapshots = []
    for step in range(STEPS):
        rows = torch.randperm(64, generator=generator)[:16]
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        scheduler.step()
        if step % 10 == 9:
            model.eval()
            snapshots.append(model(x).detach())
            model.train()
    return torch.stack(snapshots)


def both(name, schedule, bias, clip=0):
    """Logits of the divided training, of the rescaled one, and of the one that ignores T."""
    kind, make = OPTIMIZERS[name]
    lr, decay, eps = (0.5, 1e-2, 0.0) if kind == "sgd" else (5e-3, 0.1, 1e-3)
    plain = network(bias)
    options = {"lr": lr, "weight_decay": decay} | ({"eps": eps} if eps else {})
    divided = Divided(copy.deepcopy(plain))
    rescaled = copy.deepcopy(plain)
    groups = param_groups(rescaled, T, lr, decay, kind, eps=eps, rescale=True)
    rule = SCHEDULES[schedule]
    return (
        trained(divided, make([{"params": list(divided.parameters()), **options}]), rule, clip),
        trained(rescaled, make(groups), rule, clip),
        trained(plain, make([{"params": list(plain.parameters()), **options}]), rule, clip),
    )


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_the_two_trainings_agree_to_rounding(optimizer, schedule, bias):
    divided, rescaled, ignored = both(optimizer, schedule, bias)
    torch.testing.assert_close(rescaled, divided, rtol=1e-8, atol=1e-8)
    # The comparison means something: the training moved, and T made a difference.
    assert (divided[-1] - divided[0]).abs().max() > 0.01
    assert (divided - ignored).abs().max() > 0.1


def test_clipping_by_the_global_norm_breaks_it_as_the_documentation_says():
    divided, rescaled, _ = both("sgd with momentum", "constant", True, clip=0.05)
    assert (divided - rescaled).abs().max() > 1e-3


@pytest.mark.parametrize("norm", [None, "batch"])
def test_tempering_with_one_brings_the_norm_and_the_groups_bring_the_temperature(norm):
    plain = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 5)).double()
    tempered, normed = (tstar.temper(plain, each, norm=norm) for each in (T, 1.0))
    groups = param_groups(normed, T, 0.5, 1e-2, rescale=True)
    options = {"lr": 0.5, "weight_decay": 1e-2, "momentum": 0.9}
    rule = SCHEDULES["cosine"]
    first = trained(tempered, torch.optim.SGD(tempered.parameters(), **options), rule)
    second = trained(normed, torch.optim.SGD(groups, momentum=0.9), rule)
    torch.testing.assert_close(first, second, rtol=1e-8, atol=1e-8)


def test_every_trainable_parameter_is_in_one_group_and_the_frozen_ones_in_none():
    model = network()
    model[0].weight.requires_grad_(False)
    groups = param_groups(model, T, 0.1, rescale=True)
    listed = [id(p) for group in groups for p in group["params"]]
    assert sorted(listed) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    assert [group["weight_decay"] for group in groups] == [0, 0]  # none, unless it is asked for


def test_bad_input_is_refused_with_a_way_out():
    with pytest.raises(TstarError, match="did you mean"):
        factors(T, "adamW2")
    with pytest.raises(TstarError, match="temper with T = 1"):
        param_groups(tstar.temper(network(), T), T, 0.1, rescale=True)
    with pytest.raises(TstarError, match=r"^temperature must be positive, got temperature=-1\.0"):
        param_groups(network(), -1.0, 0.1, rescale=True)
    with pytest.raises(TstarError, match=r"^temperature must be a number, got '2'"):
        factors("2", "sgd")


def test_own_groups_are_kept_and_give_up_the_head():
    """Layer decay and no decay for biases, as timm and transformers build them."""
    model = network()
    decayed, bare = (
        [p for p in model.parameters() if p.ndim > 1],
        [p for p in model.parameters() if p.ndim < 2],
    )
    own = [
        {"params": decayed, "lr": 0.05, "name": "decay"},
        {"params": bare, "weight_decay": 0.0, "name": "no decay"},
    ]
    groups = param_groups(model, T, 0.1, 1e-2, groups=own, rescale=True)
    assert [(g["name"], len(g["params"])) for g in groups] == [
        ("decay", 1),
        ("decay", 1),
        ("no decay", 3),
        ("no decay", 1),
    ]
    assert [g["lr"] for g in groups] == pytest.approx([0.05, 0.05 / T**2, 0.1, 0.1 / T**2])
    assert [g["weight_decay"] for g in groups] == pytest.approx([1e-2, 1e-2 * T**2, 0, 0])
    assert len(own[0]["params"]) == 2  # the user's own list is as it was
    with pytest.raises(TstarError, match="'params'"):
        param_groups(network(), T, 0.1, groups=[{"parameters": []}], rescale=True)


def test_a_training_that_goes_on_is_not_divided_again():
    """The weights are restored, then the optimizer is asked for."""
    before = network()
    param_groups(before, T, 0.1, rescale=True)
    resumed = network()
    resumed.load_state_dict(before.state_dict())
    groups = param_groups(resumed, T, 0.1, rescale=False)
    assert torch.equal(resumed[3].weight, before[3].weight)
    assert groups[1]["lr"] == pytest.approx(0.1 / T**2)
    with pytest.raises(TstarError, match="rescale"):  # there is no safe default
        param_groups(resumed, T, 0.1)


def test_a_parameter_that_another_layer_shares_is_not_divided():
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 5))
    model[2].bias = model[0].bias
    before = model[0].bias.detach().clone()
    with pytest.raises(TstarError, match="'2' shares one with '0'"):
        param_groups(model, T, 0.1, rescale=True)
    assert torch.equal(model[0].bias, before)


def split(lr=0.1, head_lr=0.1, decay=0.1, head_decay=0.2):
    model = network()
    groups = [
        {"params": [*model[:3].parameters()], "lr": lr, "weight_decay": decay},
        {"params": [*model[3].parameters()], "lr": head_lr, "weight_decay": head_decay},
    ]
    return model, torch.optim.SGD(groups)


def numbers(optimizer):
    return [(g["lr"], g["weight_decay"], len(g["params"])) for g in optimizer.param_groups]


@pytest.mark.parametrize(("body", "head"), [(0.1, 0.1), (1e-5, 1e-3), (0.1, 0.01)])
def test_a_new_rate_keeps_the_ratios_and_the_decays(body, head):
    """The head is faster or slower than the body, whose rate is that of the training."""
    model, optimizer = split(body, head)
    for _ in range(2):  # a fixed point
        set_rate(optimizer, [model[3]], 3 * body)
        assert numbers(optimizer) == [
            pytest.approx(group) for group in ((3 * body, 0.1, 4), (3 * head, 0.2, 2))
        ]


@pytest.mark.parametrize("seed", range(50))
def test_the_rate_that_was_set_is_read_again_to_the_last_bit(seed):
    """Else the advice would go from 0.027 to 0.027."""
    draw = random.Random(seed)
    before, wanted = draw.uniform(1e-4, 0.1), round(draw.uniform(0.01, 1), 3)
    model, optimizer = split(before, before)
    set_rate(optimizer, [model[3]], wanted)
    assert [group["lr"] for group in optimizer.param_groups] == [wanted, wanted]


def test_under_a_warm_up_the_norm_joins_the_group_of_the_heads_own_rate():
    """Every current rate is 0 then; the initial ones count."""
    body, head = nn.Linear(6, 16), nn.Linear(16, 5, bias=False)
    model = nn.Sequential(body, nn.BatchNorm1d(16), head)
    groups = [
        {"params": [body.weight], "lr": 1e-4},
        {"params": [body.bias, *model[1].parameters()], "lr": 1e-4, "weight_decay": 0.0},
        {"params": [head.weight], "lr": 1e-2},
    ]
    optimizer = torch.optim.SGD(groups)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: step / 10)
    assert {group["lr"] for group in optimizer.param_groups} == {0.0}
    tstar.temper(model, 2.0, optimizer=optimizer)
    assert [len(group["params"]) for group in optimizer.param_groups] == [1, 3, 3]


def test_an_optimizer_without_a_rate_is_refused():
    model = network()
    optimizer = torch.optim.Adafactor(model.parameters())
    optimizer.param_groups[0]["lr"] = None
    with pytest.raises(TstarError, match="Adafactor has none"):
        set_rate(optimizer, [model[3]], 0.1)
