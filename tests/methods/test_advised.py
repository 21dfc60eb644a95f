"""The method that follows tstar's own advice."""

import pytest

import tstar
from tests.methods.networks import Net, facts
from tstar import methods
from tstar.training import Config


def test_it_trains_at_what_recommend_says():
    config = Config(optimizer="sgd", lr=0.05, steps=40, batch_size=64)
    recipe = methods.get("advised").prepare(Net(), facts(training=config, csg=None))
    told = {"optimizer": "sgd", "lr": 0.05, "momentum": 0.9, "steps": 40, "batch_size": 64}
    advice = tstar.recommend(Net(), **told, weight_decay=5e-4, scenario="scratch")
    assert float(recipe.model.head.temperature) == pytest.approx(float(advice), rel=1e-6)
    assert recipe.on_epoch is None  # the advice leaves the learning rate as it is


def test_without_a_training_it_takes_the_papers_formula():
    recipe = methods.get("advised").prepare(Net(), facts(csg=None))
    assert float(recipe.model.head.temperature) == pytest.approx(
        tstar.temperature(7, 5, variant="cn"), rel=1e-6
    )
