"""``tstar.lab.check``: the printed recipe at full length, within its budget, and nothing changed."""

import json
from dataclasses import replace
from statistics import fmean
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import tstar
import tstar.lab.training.running
from tests.networks import advised
from tstar.errors import TstarError
from tstar.lab import checking
from tstar.lab.checking import Check, check
from tstar.lab.data import load
from tstar.lab.training import Result

SGD = {"optimizer": "sgd", "lr": 0.01, "batch_size": 32, "steps": 70}
BETTER = {"norm": "batch", "temperature": 2.0, "rate": 30.0}  # SGD's rate here is far too small


@pytest.fixture(scope="module")
def digits():
    return load("digits").subset(500, 100)


def make_model() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))


@pytest.fixture
def seen(monkeypatch):
    """Each training's recipe, config, seed and first weights, with the training left out."""
    found = []

    def train(recipe, parts, config, *, seed, checkpoint, head):
        weight = recipe.model[1].weight.detach().clone()
        changed = replace(config, **recipe.changes)
        found.append(
            SimpleNamespace(head=recipe.model[3], config=changed, seed=seed, weight=weight)
        )
        return Result("done")

    monkeypatch.setattr(tstar.lab.training.running, "train", train)
    return found


def test_the_printed_recipe_is_trained_at_full_length_from_the_same_weights(digits, seen):
    how = {**SGD, "momentum": 0.8, "weight_decay": 1e-3, "label_smoothing": 0.1}
    advice = advised(make_model(), BETTER, **how)
    found = check(make_model, digits, advice, seeds=2)
    assert (found.steps, found.full_steps, len(found.plain)) == (70, 70, 2)
    for run in seen:
        config = run.config
        for name in ("optimizer", "momentum", "batch_size", "steps", "label_smoothing"):
            assert getattr(config, name) == getattr(advice.training, name)
    plain, better = seen[0], seen[1]
    assert isinstance(plain.head, nn.Linear)
    assert (plain.config.lr, plain.config.weight_decay, plain.config.head_lr) == (0.01, 1e-3, 1)
    assert float(better.head.temperature) == advice.temperature
    assert isinstance(better.head.norm, nn.BatchNorm1d)
    assert better.config.lr == advice.lr
    assert (better.config.weight_decay, better.config.head_lr) == (1e-3, 1)
    assert [run.seed for run in seen] == [0, 0, 1, 1]
    assert torch.equal(seen[0].weight, seen[1].weight)
    assert not torch.equal(seen[0].weight, seen[2].weight)


@pytest.mark.parametrize("optimizer", ["sgd", "adadelta"])
def test_without_a_recipe_the_papers_method_is_tried_with_the_same_optimizer(
    digits, seen, optimizer
):
    advice = advised(make_model(), {}, **{**SGD, "optimizer": optimizer})
    found = check(make_model, digits, advice, seeds=2)
    assert found.recipe == "the paper's method"
    assert float(seen[1].head.temperature) == pytest.approx(tstar.temperature(16, 10))
    assert seen[1].config == seen[0].config
    assert seen[0].config.optimizer == ("sgd" if optimizer == "sgd" else "torch.optim:Adadelta")


def test_a_real_check_finds_a_planted_winner_and_changes_nothing(digits):
    model, state, calls = make_model(), torch.get_rng_state(), []
    before = model[1].weight.detach().clone()
    advice = advised(model, BETTER, **SGD)
    found = check(model, digits, advice, seeds=2, progress=lambda *told: calls.append(told))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(model[1].weight, before)
    assert [(done, total) for done, total, _ in calls] == [(i, 4) for i in range(4)]
    assert found.difference == pytest.approx(fmean(found.advised) - fmean(found.plain))
    assert found.difference > found.noise
    assert str(found).endswith("follow the advice.")
    assert json.loads(json.dumps(found.to_dict()))["sentence"] == found.sentence


def test_random_labels_give_no_gain():
    x = torch.randn(200, 64, generator=torch.Generator().manual_seed(0))
    advice = advised(make_model(), BETTER, **SGD)
    found = check(make_model, (x, torch.arange(200) % 10), advice, seeds=2)
    assert "no difference is seen" in found.sentence


ASKED = []


def margin(logits, targets):
    ASKED.append(len(targets))
    return nn.functional.multi_margin_loss(logits, targets)


class Signs(torch.optim.Optimizer):
    """Steps of one size, as Lion takes them."""

    def __init__(self, params, lr=1e-4):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(group["lr"] * p.grad.sign())


def test_an_optimizer_and_a_loss_of_your_own_are_what_trains(digits):
    ASKED.clear()
    advice = advised(make_model(), {}, **{**SGD, "optimizer": "lion", "steps": 20})
    with pytest.raises(TstarError, match=r"Unknown optimizer 'lion'.*package\.module:name"):
        check(make_model, digits, advice)
    check(make_model, digits, advice, seeds=2, optimizer=Signs, loss=margin)
    assert len(ASKED) == 4 * 20


def test_seeds_go_first_then_steps():
    """1,000 steps of 0.01 s: 24 s a seed of both ways."""
    plans = [checking._plan(1000, 0.01, 0.0, 3, seconds) for seconds in (80, 60, 24.5, 2)]
    assert plans == [(1000, 3), (1000, 2), (510, 2), (41, 2)]
    assert checking._plan(9, 0.01, 0.0, 3, 5) == (9, 3)
    assert checking._plan(1000, 0.01, 1.0, 3, 24.5) == (410, 2)


def test_too_little_is_refused_with_what_would_do():
    with pytest.raises(TstarError, match=r"two seeds of two .* add (\d+\.\d) minutes") as caught:
        checking._plan(1000, 1.0, 0.0, 3, 1)
    missing = float(str(caught.value).split("add ")[1].split(" ")[0])
    assert checking._plan(1000, 1.0, 0.0, 3, 1 + 60 * missing)[1] == 2


def test_two_seeds_are_finished_when_the_machine_becomes_slower(digits, seen, monkeypatch):
    monkeypatch.setattr(checking, "_plan", lambda *_: (20, 3))
    found = check(make_model, digits, advised(make_model(), BETTER, **SGD), budget=1e-9)
    assert [run.seed for run in seen] == [0, 0, 1, 1]
    assert len(found.plain) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget must be positive"),
        ({"seeds": 1}, "seeds must be"),
        ({"devise": "cpu"}, "did you mean 'device'"),
        ({"loss": lambda z, y: z}, "loss must be a function or class at the top level"),
    ],
)
def test_bad_options_are_refused(digits, options, message):
    with pytest.raises(TstarError, match=message):
        check(make_model, digits, advised(make_model(), BETTER, **SGD), **options)


def test_what_is_no_model_of_these_classes_is_refused(digits, seen):
    def broken():
        raise KeyError("weights")

    seven = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 7))
    advice = advised(make_model(), BETTER, **SGD)
    for maker, message in [
        (lambda: seven, "one output for each of the data's"),
        (lambda: None, r"must return an instance of torch\..*Module, got None"),
        (broken, "make_model failed: KeyError"),
    ]:
        with pytest.raises(TstarError, match=message):
            check(maker, digits, advice)
    assert seen == []


def found(*advised, noise=0.05, steps=1000):
    advice = SimpleNamespace(to_dict=dict, leave=False)
    return Check(advice, "the advice", (0.4, 0.6), advised, noise, steps, 1000, 1.0)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (found(0.58, 0.58), "In all 1,000 steps with 2 seeds the advice gave 58.0 %, 8.0 points above your model's 50.0 % and beyond chance (± 5.0): follow the advice."),
        (found(0.54, 0.54), "4.0 points above your model's 50.0 %, which chance explains (± 5.0): no difference is seen."),
        (found(0.4, 0.4), "10.0 points below your model's 50.0 % and beyond chance (± 5.0): train your model as it is."),
        (found(0.4, 0.4, steps=100), "train your model as it is."),
        (found(0.58, 0.58, steps=100), "A pilot is no proof: of our 70 of a tenth of the steps that were ahead, 66% stayed ahead in the whole training."),
    ],
)  # fmt: skip
def test_the_sentence_says_what_was_seen_and_no_more(result, said):
    assert result.sentence.endswith(said)
    result.advice.leave = True
    assert result.sentence.startswith("The advice changes nothing; this is the paper's method. In ")
