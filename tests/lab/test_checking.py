"""``tstar.lab.check``: it finds a planted winner, keeps its budget, and changes nothing."""

import json
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch
from torch import nn

import tstar.lab.training.running
from tstar.errors import TstarError
from tstar.lab import checking
from tstar.lab.checking import Check, Row, check
from tstar.lab.data import load
from tstar.lab.training import Config, Result

QUICK = Config(epochs=10, batch_size=64, lr=0.02)


@pytest.fixture(scope="module")
def digits():
    return load("digits").subset(500, 100)


def make_model() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))


@pytest.fixture
def seen(monkeypatch):
    """Each training's config, seed, first weights and T, with the training left out."""
    found = []

    def train(recipe, parts, config, *, seed, progress, checkpoint, head):
        heads = [m for m in recipe.model.modules() if isinstance(m, tstar.head.TemperedHead)]
        T = float(heads[0].temperature) if heads else None
        weight = recipe.model[1].weight.detach().clone()
        found.append((config, seed, weight, T))
        progress(1, 1, {})
        return Result("done", val_accuracy=0.5 + config.lr - config.weight_decay)

    monkeypatch.setattr(tstar.lab.training.running, "train", train)
    return found


def test_four_ways_from_the_same_weights_for_a_share_of_the_steps(digits, seen):
    result = check(make_model, digits, seeds=2, share=0.5, config=QUICK)
    assert result.full_steps == 10 * 8
    assert result.steps == 40
    assert {config.steps for config, *_ in seen} == {40}
    plain, advised, rate, decay = seen[:4]
    assert (plain[0].lr, plain[0].weight_decay, plain[3]) == (0.02, 5e-4, None)
    assert (rate[0].lr, rate[0].weight_decay, rate[3]) == (pytest.approx(0.06), 5e-4, None)
    assert (decay[0].lr, decay[0].weight_decay) == (0.02, pytest.approx(1.5e-3))
    told = {"optimizer": "sgd", "momentum": 0.9, "steps": 40, "batch_size": 64}
    told |= {"weight_decay": 5e-4, "scheduler": "cosine", "scenario": "scratch"}
    advice = tstar.recommend(make_model(), lr=0.02, samples=len(digits.y_train) * 9 // 10, **told)
    if advice.leave:
        assert advised[0].lr == pytest.approx(0.06)
    else:
        assert advised[3] == pytest.approx(float(advice), rel=1e-3)
        assert advised[0].lr == pytest.approx(advice.lr)
    by_seed = [[w for _, s, w, _ in seen if s == seed] for seed in (0, 1)]
    for weights in by_seed:
        assert len(weights) == 4
        assert all(torch.equal(w, weights[0]) for w in weights)
    assert not torch.equal(by_seed[0][0], by_seed[1][0])
    assert result.best.name in ("three times the rate", "the advice", "BN and T, rate × 3")
    assert len(json.loads(json.dumps(result.to_dict()))["rows"]) == 4


def test_a_real_pilot_ends_in_one_sentence_and_leaves_the_generators_alone(digits):
    state, calls = torch.get_rng_state(), []
    result = check(
        make_model,
        digits,
        budget=5,
        seeds=2,
        share=0.9,
        config=QUICK,
        progress=lambda *told: calls.append(told),
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert [done for done, *_ in calls] == [*range(8)]
    assert {total for _, total, _ in calls} == {8}
    assert result.sentence.count(". ") == 0
    assert str(result).endswith(result.sentence)
    slow, fast = result.rows[0], result.rows[2]
    assert fast.difference == pytest.approx(fast.test_accuracy - slow.test_accuracy)
    assert fast.difference > fast.noise  # 72 steps at a rate that is far too small
    assert "points above your model's" in result.sentence


def test_random_labels_give_no_gain():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 64, generator=generator)
    y = torch.arange(200) % 10
    result = check(
        make_model, (x, y), seeds=2, optimizer="adamw", lr=1e-3, steps=300, batch_size=16
    )
    assert not result.gains
    assert result.sentence.endswith("train it as it is.")


def test_a_model_itself_is_copied(digits, seen):
    model = make_model()
    before = model[1].weight.detach().clone()
    check(model, digits, seeds=2, config=QUICK)
    assert all(torch.equal(weight, before) for _, _, weight, _ in seen)
    assert torch.equal(model[1].weight, before)


def test_a_loss_of_your_own_is_what_trains(digits):
    asked = []

    def loss(logits, targets):
        asked.append(len(targets))
        return nn.functional.multi_margin_loss(logits, targets)

    result = check(make_model, digits, seeds=2, config=QUICK, loss=loss)
    assert len(asked) == 8 * result.steps


class TestBudget:
    """What is planned fits; what does not fit is refused before anything is trained."""

    def plan(self, digits, seconds, step=0.01, share=0.05, seeds=3, config=None):
        from tstar.lab.training.parts import make_parts

        config = config or Config(epochs=200, batch_size=64)
        parts = make_parts(digits, config, 0)
        return checking._plan(step, parts, config, share, seeds, seconds)

    def test_seeds_go_first_then_recipes_then_steps(self, digits):
        plans = [self.plan(digits, seconds) for seconds in (60, 10, 5, 3)]
        assert plans == [(80, 4, 3), (80, 4, 2), (80, 2, 2), (48, 2, 2)]
        assert self.plan(digits, 60, config=Config(epochs=200, batch_size=64, weight_decay=0)) == (80, 3, 3)  # fmt: skip
        assert self.plan(digits, 60, config=Config(steps=9, batch_size=64)) == (9, 4, 3)
        for seconds, (steps, ways, seeds) in zip((60, 10, 5, 3), plans, strict=True):
            assert steps * ways * seeds * 0.01 < seconds

    def test_too_little_is_refused_with_what_would_do(self, digits):
        with pytest.raises(
            TstarError, match=r"two seeds of two .* add (\d+\.\d) minutes"
        ) as caught:
            self.plan(digits, 1, step=1.0)
        missing = float(str(caught.value).split("add ")[1].split(" ")[0])
        assert self.plan(digits, 1 + 60 * missing, step=1.0) == (48, 2, 2)

    def test_a_machine_that_slows_down_is_stopped(self, digits, monkeypatch):
        monkeypatch.setattr(checking, "step_seconds", lambda *_: 1e-9)
        started, slow = time.perf_counter(), Config(epochs=2000, batch_size=2)
        result = check(make_model, digits, budget=0.02, share=0.9, config=slow)
        assert result.rows == ()
        assert "nothing can be said" in str(result)
        assert result.seconds < time.perf_counter() - started


class Signs(torch.optim.Optimizer):
    """Steps of one size, as Lion takes them: an optimizer that tstar has not measured."""

    made: ClassVar[list[tuple[float, float]]] = []

    def __init__(self, params, lr=1e-4, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})
        self.made.append((lr, weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(group["lr"] * p.grad.sign())


@pytest.mark.parametrize(
    "given",
    [
        {"optimizer": Signs, "lr": 0.003, "weight_decay": 0.1},
        {"optimizer": Signs(make_model().parameters(), lr=0.003, weight_decay=0.1)},
    ],
    ids=["class", "object"],
)
def test_an_optimizer_of_your_own_is_checked_as_it_is(digits, given):
    Signs.made.clear()
    result = check(make_model, digits, seeds=2, epochs=4, batch_size=64, **given)
    want = {(0.003, 0.1), (0.009, 0.1), (0.003, 0.3)}
    assert {(round(lr, 9), round(decay, 9)) for lr, decay in Signs.made} == want
    assert [row.name for row in result.rows][1] == "BN and T, rate × 3"


def test_an_advice_without_surgery_says_its_rates(digits, monkeypatch):
    real, own = checking.recommend, {"action": "head_lr", "temperature": 1.0, "norm": None, "head_lr": 0.5}  # fmt: skip
    monkeypatch.setattr(checking, "recommend", lambda *a, **k: replace(real(*a, **k), **own))
    result = check(make_model, digits, seeds=2, epochs=4, batch_size=64, optimizer="sgd", lr=0.05)
    assert "lr=0.5 for the output layer" in result.rows[1].do
    assert "temper" not in result.rows[1].do


def test_fine_tuning_has_its_own_temperature(digits):
    result = check(make_model, digits, seeds=2, optimizer="adamw", lr=1e-4, steps=200, scenario="finetune")  # fmt: skip
    assert "tstar.temper(model, 0.5)" in next(row.do for row in result.rows if "BN" in row.name)


@pytest.mark.parametrize(
    ("training", "config"),
    [
        ({}, Config()),
        ({"lr": None}, Config()),
        (
            {"optimizer": torch.optim.SGD(make_model().parameters(), lr=0.02, momentum=0.8)},
            Config(lr=0.02, momentum=0.8, weight_decay=0.0),
        ),
        (
            {"optimizer": torch.optim.AdamW(make_model().parameters(), lr=1e-3, betas=(0.8, 0.9))},
            Config(optimizer="adamw", lr=1e-3, beta1=0.8, beta2=0.9, weight_decay=0.01),
        ),
        ({"steps": 40, "scheduler": "constant"}, Config(steps=40, schedule="constant")),
    ],
)
def test_the_training_in_keywords(training, config):
    assert checking._protocol(None, training) == config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget must be positive"),
        ({"seeds": 1}, "seeds must be"),
        ({"share": 1.5}, "share < 1"),
        ({"batchsize": 64}, "did you mean 'batch_size'"),
        ({"optimizer": "lion"}, "Unknown optimizer 'lion'"),
        ({"scheduler": "cosin"}, "Unknown schedule 'cosin'"),
    ],
)
def test_bad_options_are_refused(digits, options, message):
    with pytest.raises(TstarError, match=message):
        check(make_model, digits, **options)


def test_what_is_no_model_of_these_classes_is_refused(digits, seen):
    def broken():
        raise KeyError("weights")

    for maker, message in [
        (
            lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 7)),
            "one output for each of the data's",
        ),
        (lambda: None, r"must return an instance of torch\..*Module, got None"),
        ("resnet10", "make_model failed: TypeError"),
        (broken, "make_model failed: KeyError"),
        (lambda: make_model().append(nn.Softmax(1)), "got a softmax after '3'"),
    ]:
        with pytest.raises(TstarError, match=message):
            check(maker, digits, config=QUICK)
    assert seen == []


ADVICE = SimpleNamespace(to_dict=lambda: {})


def found(*rows):
    made = tuple(Row(n, f"do {n}", val, 0.5 + gap, gap, noise, 0) for n, val, gap, noise in rows)
    return Check(made, ADVICE, steps=50, full_steps=1000, seeds=3, seconds=1.0)


PLAIN = ("plain", 0.5, 0.0, 0.0)


@pytest.mark.parametrize(
    ("rows", "best", "gains", "said"),
    [
        ([PLAIN, ("faster", 0.6, 0.08, 0.05)], "faster", True, "faster gave 58.0 %, 8.0 points above your model's 50.0 % and beyond noise: do faster."),
        ([PLAIN, ("faster", 0.6, 0.04, 0.05)], "faster", False, "(the best on validation data, faster, was 4.0 points above): train it as it is."),
        ([PLAIN, ("faster", 0.6, -0.04, 0.01)], "faster", False, "faster, was 4.0 points below): train it as it is."),
        ([PLAIN, ("faster", 0.5, 0.04, 0.01)], "plain", False, "nothing beat your model's 50.0 %: train it as it is."),
        ([PLAIN, ("a", 0.6, 0.08, 0.01), ("b", 0.7, 0.02, 0.01)], "b", True, "b gave 52.0 %"),
    ],
)  # fmt: skip
def test_validation_chooses_and_test_decides(rows, best, gains, said):
    check = found(*rows)
    assert check.best.name == best
    assert check.gains is gains
    assert check.sentence.startswith("In a pilot of 50 steps (5 % of 1,000) with 3 seeds")
    assert said in check.sentence


def test_the_table_and_the_json_have_every_row():
    check = found(PLAIN, ("faster", 0.6, 0.08, 0.05))
    lines = str(check).splitlines()
    assert lines[2].split() == ["faster", "60.0", "58.0", "+8.0", "±", "5.0"]
    record = check.to_dict()
    assert (record["best"], record["gains"], len(record["rows"])) == ("faster", True, 2)
    nothing = found()
    assert nothing.to_dict()["best"] is None
    assert str(nothing) == nothing.sentence
