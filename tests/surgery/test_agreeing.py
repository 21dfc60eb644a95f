"""An advice that is applied to another model, optimizer or rate than it was made for says so, and no other does."""

import dataclasses
import warnings

import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW, Optimizer
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    LambdaLR,
    LinearLR,
    OneCycleLR,
    StepLR,
)

import tstar
from tstar import TstarWarning

HOW = {"steps": 300, "batch_size": 32}


def mlp(K=10, M=64):
    return nn.Sequential(nn.Linear(20, M), nn.ReLU(), nn.Linear(M, K))


@pytest.fixture(scope="module")
def advice():
    made = tstar.recommend(mlp(), optimizer=("sgd", 0.1), **HOW)
    assert (made.lr_factor, made.leave) == (3.0, False)
    return made


def groups(model, advice, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"T\* presupposes")
        return tstar.param_groups(model, advice, **{"lr": 0.3, **options})


def one_cycle(optimizer, factor=1.0):
    return OneCycleLR(optimizer, max_lr=0.1 * factor, total_steps=300)


def odd_cycle(optimizer, factor=1.0):
    """Its peak lies between two steps."""
    return OneCycleLR(optimizer, max_lr=0.1 * factor, total_steps=300, pct_start=0.215)


def warm_up(optimizer, factor=1.0):
    return LinearLR(optimizer, start_factor=0.01, total_iters=100)


def by_step(optimizer, factor=1.0):
    return LambdaLR(optimizer, lambda step: min((step + 1) / 30, (300 - step) / 270))


def falling(optimizer, factor=1.0):
    return StepLR(optimizer, step_size=100)


@pytest.mark.parametrize("schedule", [one_cycle, odd_cycle, warm_up, by_step, falling])
@pytest.mark.parametrize("named", [True, False], ids=["told", "of the advice"])
def test_a_peak_rate_that_nobody_raised_is_reported_whatever_the_schedule(schedule, named):
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    scheduler = schedule(optimizer)
    advice = tstar.recommend(model, optimizer=optimizer, scheduler=scheduler, **HOW)
    assert advice.training.lr == pytest.approx(0.3, rel=0.01)
    what = r"the scheduler's max_lr by advice\.lr_factor \(3\)\." if "cycle" in schedule.__name__ else "the rate by"  # fmt: skip
    with pytest.warns(TstarWarning, match=rf"and T is too high for 0\.1: multiply {what}"):
        tstar.temper(model, advice, optimizer=optimizer if named else None)


@pytest.mark.parametrize("schedule", [one_cycle, odd_cycle, warm_up, by_step, falling])
def test_a_peak_rate_that_was_raised_is_not(advice, schedule):
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1 * advice.lr_factor)
    schedule(optimizer, advice.lr_factor)
    tstar.temper(model, advice, optimizer=optimizer)


def restarting(optimizer):
    return CosineAnnealingWarmRestarts(optimizer, 300)


def cosine(optimizer):
    return CosineAnnealingLR(optimizer, 300)


@pytest.mark.parametrize("schedule", [by_step, restarting, cosine, falling])
def test_a_rate_that_the_scheduler_takes_back_is_none_that_was_raised(schedule):
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    scheduler = schedule(optimizer)
    advice = tstar.recommend(model, optimizer=optimizer, scheduler=scheduler, **HOW)
    before = optimizer.param_groups[0]["lr"]
    optimizer.param_groups[0]["lr"] *= advice.lr_factor
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TstarWarning)
        tstar.temper(model, advice)
    optimizer.step()
    scheduler.step()
    taken_back = optimizer.param_groups[0]["lr"] < 2.5 * before
    assert [str(w.message)[:46] for w in caught] == (
        ["The advice is for a learning rate of 0.3, and "] if taken_back else []
    )
    assert taken_back == (schedule in (by_step, restarting))


def test_a_raised_cycle_in_place_of_the_one_that_the_advice_saw():
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    advice = tstar.recommend(model, optimizer=optimizer, scheduler=one_cycle(optimizer), **HOW)
    one_cycle(optimizer, advice.lr_factor)
    tstar.temper(model, advice)


def test_a_training_whose_raised_rate_has_fallen_to_a_third_says_nothing(advice):
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.3)
    falling(optimizer)
    optimizer.param_groups[0]["lr"] = 0.1
    tstar.temper(model, advice, optimizer=optimizer)


def test_the_rate_of_the_group_that_trains_the_head_counts(advice):
    """Layer decay may bring a raised rate back to a third, further down."""
    model = mlp()
    layers = {0.3: list(model[2].parameters()), 0.1: list(model[0].parameters())}
    split = [{"params": params, "lr": lr} for lr, params in layers.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        groups(model, advice, groups=split)
        tstar.temper(model, advice, optimizer=SGD(split))
    lower = [{"params": iter(params), "lr": lr / 3} for lr, params in layers.items()]
    with pytest.warns(TstarWarning, match=r"too high for 0\.1: multiply the rate"):
        derived = groups(model_of(layers), advice, groups=lower, rescale=False)
    assert sum(len(group["params"]) for group in derived) == 4


def model_of(layers):
    """The model that holds these parameters again."""
    model = mlp()
    model[2].weight, model[2].bias = layers[0.3]
    model[0].weight, model[0].bias = layers[0.1]
    return model


@pytest.mark.parametrize("apply", [tstar.temper, groups])
def test_an_advice_for_another_model_is_reported(advice, apply):
    with pytest.warns(
        TstarWarning, match=r"for M = 64, K = 10, but .* M = 32, K = 5, .*tstar\.recommend"
    ) as caught:
        apply(mlp(5, 32), advice)
    assert [w.filename for w in caught][:1] == [__file__]
    with pytest.warns(TstarWarning, match=r"to M = 64, K = 5, where"):
        apply(mlp(5), advice)


def test_an_advice_for_another_kind_of_optimizer_is_reported(advice):
    model = mlp()
    with pytest.warns(TstarWarning, match=r"for optimizer = sgd, but .* to optimizer = adamw, "):
        tstar.temper(model, advice, optimizer=AdamW(model.parameters(), lr=1e-3))
    with pytest.warns(TstarWarning, match=r"for optimizer = sgd, but .* to optimizer = adamw, "):
        groups(mlp(), advice, optimizer="adamw", lr=1e-3)
    with pytest.warns(
        TstarWarning, match="for M = 64, K = 10, optimizer = sgd, but .*optimizer = adam,"
    ):
        groups(mlp(5), advice, optimizer="adam", lr=1e-3)


class Own(Optimizer):
    """An optimizer of which nothing is known."""

    def __init__(self, params, lr=0.3):
        super().__init__(params, {"lr": lr})


class Nesterov(SGD):
    """One whose class says what it is."""


class SAM(Optimizer):
    """One that holds another."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})
        self.base_optimizer = SGD(self.param_groups, lr)


@pytest.mark.parametrize("kind", [SGD, Nesterov, Own, SAM])
def test_what_agrees_or_is_not_known_says_nothing(advice, kind):
    tstar.temper(mlp(), advice)
    groups(mlp(), advice)
    model = mlp()
    tstar.temper(model, advice, optimizer=kind(model.parameters(), lr=0.3))
    tstar.temper(mlp(5, 32), 4.0)
    unknown = tstar.recommend(mlp(), variant="cn")  # nothing was told of the training
    model = mlp()
    tstar.temper(model, unknown, optimizer=AdamW(model.parameters(), lr=1e-3))
    tstar.temper(mlp(5), tstar.explain(64, 10, optimizer=("sgd", 0.1), **HOW))


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.aux, self.fc = nn.Linear(20, 64), nn.Linear(20, 10), nn.Linear(64, 10)

    def forward(self, x):
        return self.fc(self.body(x).relu()), self.aux(x)


def test_of_several_heads_one_is_the_advice_s(advice):
    assert tstar.temper(TwoHeads(), dataclasses.replace(advice, head=None), head=["aux", "fc"])


def test_a_warning_changes_nothing(advice):
    """Where warnings are errors, the model is as it was."""
    model = mlp(5, 32)
    before = [p.clone() for p in model.parameters()]
    for apply in (tstar.temper, groups):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(TstarWarning):
                apply(model, advice)
    assert isinstance(model[2], nn.Linear)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
