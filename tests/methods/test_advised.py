"""The method that follows tstar's own advice."""

import pytest
import torch

import tstar
from tests.methods.networks import Net, facts
from tstar import methods
from tstar.training import Config


def test_it_trains_at_what_recommend_says():
    config = Config(optimizer="sgd", lr=0.05, steps=400, batch_size=64)
    recipe = methods.get("advised").prepare(Net(), facts(training=config, csg=None))
    told = {"optimizer": "sgd", "lr": 0.05, "momentum": 0.9, "steps": 400, "batch_size": 64}
    advice = tstar.recommend(Net(), **told, weight_decay=5e-4, scenario="scratch")
    assert not advice.leave
    assert float(recipe.model.head.temperature) == pytest.approx(float(advice), rel=1e-6)
    assert recipe.on_epoch(1, 10) == advice.lr_factor == 3
    assert recipe.report() == {"lr_factor": 3.0, "left": False}


@pytest.mark.parametrize("schedule", ["constant", "cosine", "./kit.py:mine"])
def test_samples_and_schedule_count_as_in_recommend(schedule, monkeypatch):
    told, asked = [], tstar.recommend
    monkeypatch.setattr("tstar.advice.recommend", lambda *a, **k: told.append(k) or asked(*a, **k))
    config = Config(lr=0.05, steps=400, batch_size=64, schedule=schedule)
    recipe = methods.get("advised").prepare(Net(), facts(training=config, csg=None, samples=300))
    how = {"optimizer": "sgd", "lr": 0.05, "momentum": 0.9, "steps": 400, "batch_size": 64}
    usual = None if schedule.endswith("mine") else schedule
    advice = asked(Net(), **how, weight_decay=5e-4, scheduler=usual, samples=300)
    assert (told[0]["samples"], told[0].get("scheduler")) == (300, usual)
    assert float(recipe.model.head.temperature) == pytest.approx(float(advice), rel=1e-6)


def test_a_model_that_is_best_left_alone_is_trained_as_it_is():
    config = Config(
        optimizer="sgd", lr=1e-7, steps=3, batch_size=2
    )  # like nothing that was measured
    recipe = methods.get("advised").prepare(Net(), facts(training=config, csg=None))
    assert not hasattr(recipe.model.head, "temperature")
    assert recipe.report() == {"lr_factor": 1.0, "left": True}


def test_an_optimizer_of_ones_own_leaves_the_model():
    """Not measured is not the same as not told, for which recommend gives the paper's T*."""
    rmsprop = torch.optim.RMSprop(Net().parameters(), lr=0.01)
    assert tstar.recommend(Net(), optimizer=rmsprop, steps=400, batch_size=64).leave
    config = Config(optimizer="./kit.py:lion", lr=0.01, steps=400, batch_size=64)
    recipe = methods.get("advised").prepare(Net(), facts(training=config, csg=None))
    assert not hasattr(recipe.model.head, "temperature")
    assert recipe.on_epoch is None


def test_without_a_training_it_takes_the_papers_formula():
    recipe = methods.get("advised").prepare(Net(), facts(csg=None))
    assert float(recipe.model.head.temperature) == pytest.approx(
        tstar.temperature(7, 5, variant="cn"), rel=1e-6
    )
