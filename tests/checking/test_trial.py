"""``tstar.check``: it finds a planted peak, fits its budget, and changes nothing of the caller's."""

import json
import re
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

import tstar.checking.trial
import tstar.training.running
from tstar.checking.trial import check
from tstar.errors import TstarError
from tstar.training import Config, Result

QUICK = Config(epochs=2, batch_size=64)


def make_model() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))


@pytest.fixture
def planted(monkeypatch):
    """Training replaced by a curve that is known: accuracy peaks at T = 8, noise by the seed."""
    seen = []

    def train(recipe, parts, config, *, seed, progress, checkpoint):
        model = recipe.model
        heads = [m for m in model.modules() if isinstance(m, tstar.TemperedHead)]
        T = float(heads[0].temperature) if heads else None
        seen.append((T, seed, model[1].weight.detach().clone()))
        accuracy = 0.5 if T is None else 0.9 - 0.05 * abs(np.log2(T) - 3) + 0.001 * seed
        return Result("done", val_accuracy=accuracy, test_accuracy=accuracy - 0.01)

    monkeypatch.setattr(tstar.training.running, "train", train)
    return seen


def test_it_reports_the_peak_and_the_formula(digits, planted):
    result = check(make_model, digits, temperatures=[32, 1, 8, 2], seeds=3, config=QUICK)
    assert result.best.temperature == 8
    assert [row.temperature for row in result.rows if row.rate == 1] == [None, 1, 2, 8, 32]
    assert result.rows[-1] is result.favored
    assert result.advised is (result.plain if result.advice.leave else result.favored)
    assert result.best.test_accuracy == pytest.approx(0.89 + 0.001)
    assert result.best.error == pytest.approx(0.001 / np.sqrt(3))
    assert result.advice.num_features == 16
    assert result.formula.temperature == 1  # nearest to 0.45, what 16 steps can learn at
    text = str(result)
    assert "← peak" in text
    assert "← formula" in text
    assert "← advised" in text
    assert f"{result.temperature:.3g}" in result.sentence
    gain = 100 * (result.favored.test_accuracy - result.plain.test_accuracy)
    assert f"{gain:.1f} points above your model" in result.sentence
    assert json.loads(json.dumps(result.to_dict()))["best_temperature"] == 8


def test_random_labels_of_a_small_data_set_give_no_gain():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 64, generator=generator)
    y = torch.arange(60) % 10
    result = check(make_model, (x, y), seeds=2, optimizer=("adamw", 1e-3), steps=50, batch_size=16)
    assert (result.val_samples, result.test_samples) == (5, 12)
    assert not result.told_apart
    for gain in re.findall(r"points (?:above|below) your model[^.]*", result.sentence):
        assert gain.endswith(", within the noise")
    assert "The test part has 12 samples only, on which even 40 points may be noise" in result.sentence  # fmt: skip


def test_every_temperature_of_a_seed_starts_from_the_same_weights(digits, planted):
    check(make_model, digits, temperatures=[1, 4], seeds=2, config=QUICK)
    by_seed = {seed: [w for _, s, w in planted if s == seed] for seed in (0, 1)}
    for weights in by_seed.values():
        assert len(weights) == 4  # plain, the two, and what is advised
        assert all(torch.equal(w, weights[0]) for w in weights)
    assert not torch.equal(by_seed[0][0], by_seed[1][0])


def test_the_default_grid_surrounds_the_formula(digits, planted):
    result = check(make_model, digits, seeds=1, config=QUICK)
    T = result.temperature
    grid = [row.temperature for row in result.rows[1:] if row.rate == 1]
    assert grid == tstar.checking.trial._around(T)
    assert grid[:2] == [T / 4, T / 2]
    assert tstar.checking.trial._around(3.7) == [
        3.7 / 4,
        3.7 / 2,
        3.7,
        7.4,
        14.8,
    ]  # 0.93 stands for 1
    assert tstar.checking.trial._around(8.0) == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert result.formula.temperature == T


def test_the_formula_knows_the_training_of_the_check(digits, planted):
    """It is bounded by what so few steps can learn at, and says what tstar.temperature says."""
    result = check(make_model, digits, temperatures=[1], seeds=1, config=QUICK)
    told = {"optimizer": "sgd", "steps": result.steps, "batch_size": QUICK.batch_size}
    assert result.temperature == pytest.approx(tstar.temperature(16, 10, lr=QUICK.lr, **told))
    assert result.favored.rate == 3  # what the evidence favors with SGD
    faster = tstar.temperature(16, 10, lr=3 * QUICK.lr, **told)
    assert result.favored.temperature == pytest.approx(faster)
    assert "points above your model" in result.sentence


def test_diverged_trainings_count_as_guesses(digits, monkeypatch):
    monkeypatch.setattr(tstar.training.running, "train", lambda *_, **__: Result("diverged"))
    result = check(make_model, digits, temperatures=[1], seeds=2, config=QUICK)
    assert (result.rows[1].test_accuracy, result.rows[1].diverged) == (pytest.approx(0.1), 2)
    assert "2 diverged" in str(result)


def test_the_budget_sets_the_length(digits, planted, monkeypatch):
    monkeypatch.setattr(tstar.checking.trial, "step_seconds", lambda *_: 0.01)
    long = Config(epochs=200, batch_size=64)
    few = check(make_model, digits, temperatures=[1, 2], seeds=1, budget=10, config=long)
    many = check(make_model, digits, temperatures=[1, 2], seeds=1, budget=20, config=long)
    assert 100 < few.steps < 334
    assert many.steps > 1.8 * few.steps
    capped = check(make_model, digits, temperatures=[1], seeds=1, budget=1e6, config=QUICK)
    assert capped.steps == 2 * 8
    with pytest.raises(TstarError, match="budget must allow at least 20 steps") as caught:
        check(make_model, digits, temperatures=[1, 2], seeds=1, budget=0.2, config=long)
    enough = float(re.search(r"budget=(\d+)", str(caught.value))[1])
    check(make_model, digits, temperatures=[1, 2], seeds=1, budget=enough, config=long)


def test_a_real_check_runs_and_draws(digits, tmp_path):
    pytest.importorskip("matplotlib")
    state = torch.get_rng_state()
    result = check(make_model, digits, temperatures=[1, 4], seeds=1, budget=60, config=QUICK)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(row.test_accuracy > 0.15 for row in result.rows)
    result.plot(tmp_path / "check.svg")
    assert "<svg" in (tmp_path / "check.svg").read_text(encoding="utf-8")
    with pytest.raises(TstarError, match="could not be written"):
        result.plot(tmp_path / "check.svg" / "check.svg")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperatures": []}, "temperatures must hold at least one number"),
        ({"temperatures": ["2"]}, "temperatures must be a number, got '2'"),
        ({"temperatures": 2.0}, "temperatures must be a list of numbers, got 2.0"),
        ({"temperatures": "1,2"}, "temperatures must be a list of numbers, got '1,2'"),
        ({"budget": "60"}, "budget must be a number, got '60'"),
        ({"budget": 0}, "budget must be positive"),
        ({"temperatures": [1, -2]}, "temperatures must be positive"),
        ({"seeds": 0}, "seeds must be"),
    ],
)
def test_bad_options_are_refused(digits, options, message):
    with pytest.raises(TstarError, match=message):
        check(make_model, digits, config=QUICK, **options)


def test_a_model_of_other_classes_or_no_model_is_refused(digits):
    with pytest.raises(TstarError, match="one output for each of the data's 10 classes"):
        check(lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 7)), digits, config=QUICK)
    with pytest.raises(TstarError, match=r"must return a torch\.nn\.Module"):
        check(lambda: None, digits, config=QUICK)


@pytest.mark.parametrize(
    ("given", "got"),
    [(make_model(), "a model of type Sequential"), ("resnet10", "an object of type str")],
)
def test_a_model_in_place_of_its_maker_is_refused_before_anything_is_read(given, got):
    with pytest.raises(
        TstarError, match=rf"must be a function .* got {got}; .*lambda: MyModel\(\)"
    ):
        check(given, "no such data")


SGD = torch.optim.SGD(make_model().parameters(), lr=0.02, momentum=0.8, weight_decay=0.0)


@pytest.mark.parametrize(
    ("training", "config"),
    [
        ({}, Config()),
        ({"lr": None}, Config()),
        ({"optimizer": "adamw", "lr": 1e-3}, Config(optimizer="adamw", lr=1e-3)),
        ({"optimizer": ("adam", 2e-3)}, Config(optimizer="adam", lr=2e-3)),
        ({"optimizer": SGD}, Config(lr=0.02, momentum=0.8, weight_decay=0.0)),
        ({"optimizer": SGD, "lr": 0.3}, Config(lr=0.3, momentum=0.8, weight_decay=0.0)),
        (
            {"steps": 40, "epochs": 7, "batch_size": 16, "label_smoothing": 0.1},
            Config(steps=40, epochs=7, batch_size=16, label_smoothing=0.1),
        ),
        ({"scheduler": "constant"}, Config(schedule="constant")),
    ],
)
def test_the_training_in_the_keywords_of_recommend(training, config):
    assert tstar.checking.trial._protocol(None, training) == config


def test_a_check_in_keywords_is_that_of_their_config(digits, planted):
    said = check(make_model, digits, temperatures=[1], seeds=1, lr=0.02, steps=30, batch_size=64)
    assert said.steps == 30
    told = {"optimizer": "sgd", "steps": 30, "batch_size": 64}
    assert said.temperature == pytest.approx(tstar.temperature(16, 10, lr=0.02, **told))


def test_a_training_said_twice_or_in_unknown_words_is_refused(digits):
    with pytest.raises(TstarError, match="must be said once, got config and lr, steps"):
        check(make_model, digits, config=QUICK, lr=0.1, steps=20)
    with pytest.raises(TstarError, match="Unknown keyword 'batchsize'; did you mean 'batch_size'"):
        check(make_model, digits, batchsize=64)
    with pytest.raises(TstarError, match="did you mean 'tuned'"):
        check(make_model, digits, tuned_=True)
    with pytest.raises(TstarError, match="tuned must be True or False, got 'yes'"):
        check(make_model, digits, tuned="yes")
    with pytest.raises(TstarError, match="no samples: a check counts them in the data"):
        check(make_model, digits, samples=64)
    with pytest.raises(TstarError, match="no loss: a check trains with cross-entropy, or"):
        check(make_model, digits, loss=torch.nn.MSELoss())
    with pytest.raises(TstarError, match=r"scheduler must be one of cosine, .* got StepLR"):
        check(make_model, digits, scheduler=torch.optim.lr_scheduler.StepLR(SGD, 3))
    with pytest.raises(TstarError, match="Unknown schedule 'cosin'"):
        check(make_model, digits, scheduler="cosin")


@pytest.mark.parametrize("by", ["keywords", "config"])
def test_what_the_advice_depends_on_reaches_it(digits, planted, by):
    said = {"label_smoothing": 0.1, "schedule": "constant"}
    how = {"config": Config(steps=30, **said)}
    if by == "keywords":
        how = {"steps": 30, "label_smoothing": 0.1, "scheduler": "constant"}
    plain = check(make_model, digits, temperatures=[1], seeds=1, **how)
    assert plain.advised.rate == 3
    told = plain.advice.training
    assert (told.label_smoothing, told.schedule, told.tuned, told.scenario) == (0.1, "constant", False, None)  # fmt: skip
    assert "label-smoothing" in {notice.code for notice in plain.advice.notices}
    tuned = check(make_model, digits, temperatures=[1], seeds=1, tuned=True, **how)
    assert (tuned.advice.training.tuned, tuned.advised.rate) == (True, 1)
    fine = check(make_model, digits, temperatures=[1], seeds=1, scenario="finetune", **how)
    assert fine.advice.training.scenario == "finetune"


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


def signs(parameters, lr):
    return Signs(parameters, lr)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"optimizer": (Signs, 0.003)}, (0.003, 5e-4)),
        ({"optimizer": Signs, "lr": 0.002, "weight_decay": 0.1}, (0.002, 0.1)),
        ({"optimizer": (signs, 0.003)}, (0.003, 0.0)),
        ({"optimizer": (f"{__name__}:Signs", 0.003)}, (0.003, 5e-4)),
        ({"optimizer": f"{__name__}:signs", "lr": 0.004}, (0.004, 0.0)),
    ],
)
def test_an_optimizer_of_your_own_is_checked_as_it_is(digits, given, made):
    Signs.made.clear()
    result = check(make_model, digits, temperatures=[1, 4], seeds=1, steps=25, batch_size=64, **given)  # fmt: skip
    assert set(Signs.made) == {made}
    assert len(Signs.made) >= 3  # a training each, besides what is timed and read
    assert result.temperature == 1.0  # T above 1 was not measured for it
    assert result.steps == 25


@pytest.mark.parametrize("given", ["lion", ("lion", 1e-4), torch.optim.RMSprop([torch.zeros(1)])])
def test_an_optimizer_that_is_not_known_by_name_is_to_be_given_itself(digits, given):
    message = (
        r"known: adam, adamw, sgd\. To check another, pass its class, .* optimizer=\(Lion, 1e-4\)\."
    )
    with pytest.raises(TstarError, match=message):
        check(make_model, digits, optimizer=given)
    with pytest.raises(TstarError, match="optimizer must be a function or class at the top level"):
        check(make_model, digits, optimizer=lambda parameters, lr: signs(parameters, lr))


@pytest.mark.parametrize(("end", "named"), [(nn.Softmax(1), "softmax"), (nn.Sigmoid(), "sigmoid")])
def test_a_model_that_returns_no_logits_is_refused_before_it_trains(digits, planted, end, named):
    with pytest.raises(TstarError, match=f"got a {named} after '3'"):
        check(lambda: make_model().append(end), digits, config=QUICK)
    assert planted == []


def test_what_cannot_be_checked_is_told_before_any_training(digits):
    def broken():
        raise KeyError("weights")

    with pytest.raises(TstarError, match="make_model failed: KeyError"):
        check(broken, digits)
    with pytest.raises(TstarError, match="must be trainable"):
        check(lambda: make_model().requires_grad_(False), digits, config=QUICK)
    with pytest.raises(TstarError, match="progress must be a function"):
        check(make_model, digits, progress=3)
    with pytest.raises(TstarError, match="temperatures must be a list"):
        check(make_model, digits, temperatures=np.array(2.0))
