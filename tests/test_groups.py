"""T as initialization, rate and decay of the head."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tstar
from tstar.errors import TstarError, TstarWarning
from tstar.groups import factors, param_groups, set_rates

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
    groups = param_groups(rescaled, T, lr, decay, kind, eps=eps)
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


def test_it_agrees_with_the_tempered_head_as_well():
    model = network()
    tempered = tstar.temper(model, T, norm=None)
    groups = param_groups(model, T, 0.5, 1e-2)
    options = {"lr": 0.5, "weight_decay": 1e-2, "momentum": 0.9}
    rule = SCHEDULES["cosine"]
    first = trained(tempered, torch.optim.SGD(tempered.parameters(), **options), rule)
    second = trained(model, torch.optim.SGD(groups, momentum=0.9), rule)
    torch.testing.assert_close(first, second, rtol=1e-8, atol=1e-8)


def test_tempering_with_one_brings_the_norm_and_the_groups_bring_the_temperature():
    plain = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 5)).double()
    tempered = tstar.temper(plain, T)
    normed = tstar.temper(plain, 1.0)
    groups = param_groups(normed, T, 0.5, 1e-2)  # no warning: there is a batch norm
    rule = SCHEDULES["constant"]
    first = trained(
        tempered, torch.optim.SGD(tempered.parameters(), lr=0.5, weight_decay=1e-2), rule
    )
    second = trained(normed, torch.optim.SGD(groups), rule)
    torch.testing.assert_close(first, second, rtol=1e-8, atol=1e-8)


def test_every_trainable_parameter_is_in_one_group_and_the_frozen_ones_in_none():
    model = network()
    model[0].weight.requires_grad_(False)
    groups = param_groups(model, T, 0.1)
    listed = [id(p) for group in groups for p in group["params"]]
    assert sorted(listed) == sorted(id(p) for p in model.parameters() if p.requires_grad)
    assert [group["weight_decay"] for group in groups] == [0, 0]  # none, unless it is asked for


@pytest.mark.parametrize("between", [nn.Dropout(0.5), nn.Flatten(), nn.Identity()])
def test_a_norm_before_dropout_or_a_reshape_still_counts(between):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), between, nn.Linear(8, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        param_groups(model, T, 0.1)


@pytest.mark.parametrize("before", [nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 8)])
def test_an_input_that_is_not_batch_normalized_gives_a_warning(before):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), before, nn.Linear(8, 3))
    with pytest.warns(TstarWarning, match="presupposes a batch norm"):
        param_groups(model, T, 0.1)


def test_bad_input_is_refused_with_a_way_out():
    with pytest.raises(TstarError, match="did you mean"):
        factors(T, "adamW2")
    with pytest.raises(TstarError, match="temper with T = 1"):
        param_groups(tstar.temper(network(), T), T, 0.1)
    with pytest.raises(TstarError, match=r"^temperature must be positive, got temperature=-1\.0"):
        param_groups(network(), -1.0, 0.1)
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
    groups = param_groups(model, T, 0.1, 1e-2, groups=own)
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
        param_groups(network(), T, 0.1, groups=[{"parameters": []}])


def test_a_second_call_divides_nothing():
    model = network()
    param_groups(model, T, 0.1)
    once = model[3].weight.detach().clone()
    param_groups(model, T, 0.1)
    assert torch.equal(model[3].weight, once)
    param_groups(copy.deepcopy(model), T, 0.1)
    with pytest.raises(TstarError, match="divided by another T"):
        param_groups(model, 2 * T, 0.1)


def test_a_training_that_goes_on_is_not_divided_again():
    """Lightning restores the weights, then asks for the optimizer."""
    trained_before = network()
    param_groups(trained_before, T, 0.1)
    trained_before(torch.randn(8, 6, dtype=torch.float64))
    resumed = network()
    resumed.load_state_dict(trained_before.state_dict())
    with pytest.raises(TstarError, match=r"has seen batches.*rescale=False"):
        param_groups(resumed, T, 0.1)
    groups = param_groups(resumed, T, 0.1, rescale=False)
    assert torch.equal(resumed[3].weight, trained_before[3].weight)
    assert groups[1]["lr"] == pytest.approx(0.1 / T**2)
    param_groups(resumed, T, 0.1, rescale=True)
    torch.testing.assert_close(resumed[3].weight, trained_before[3].weight / T)


def test_advised_rates_keep_the_ratios() -> None:
    model = network()
    body, head = ([*part.parameters()] for part in (model[:3], model[3]))  # type: ignore[index]
    apart = [{"params": body, "weight_decay": 0.1}, {"params": head, "weight_decay": 0.2}]
    usual = {"lr": 0.1, "head_lr": None, "weight_decay": 0.5, "heads": [tstar.find_head(model)]}
    for groups, advised, expected in (  # (rate, decay, parameters) of each group
        (apart, {"lr": 0.3, "weight_decay": 0.6}, [(0.3, 0.3, 4), (0.3, 0.6, 2)]),
        (apart, {"head_lr": 2.0}, [(0.1, 0.25, 4), (2.0, 0.5, 2)]),
        ([{"params": [*body, *head]}], {"head_lr": 2.0}, [(0.1, 0.5, 4), (2.0, 0.5, 2)]),
    ):
        optimizer = torch.optim.SGD([dict(group) for group in groups], lr=0.1)
        set_rates(SimpleNamespace(**usual | advised), model, optimizer)
        found = [(g["lr"], g["weight_decay"], len(g["params"])) for g in optimizer.param_groups]
        assert found == [pytest.approx(group) for group in expected]


def test_every_optimizer_starts_the_head_at_one_part_in_t():
    assert [factors(4.0, name)["init"] for name in ("sgd", "adamw", "adam")] == [0.25] * 3
