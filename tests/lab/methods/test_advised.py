"""The method that follows tstar's own advice."""

import pytest
import torch
from torch import nn

import tstar
from tstar.lab import methods
from tstar.lab.training import Config

HOW = {"optimizer": "sgd", "lr": 0.01, "steps": 800, "batch_size": 64}


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))


def prepared(**changes):
    setting = methods.Setting(64, 10, Config(**HOW | {"samples": 2000} | changes))
    return methods.get("advised").prepare(network(), setting)


@pytest.mark.parametrize("schedule", ["constant", "cosine", "./kit.py:mine"])
def test_it_trains_at_what_recommend_says(schedule):
    recipe = prepared(schedule=schedule)
    how = HOW | {"momentum": 0.9, "weight_decay": 5e-4, "samples": 2000, "scenario": "scratch"}
    advice = tstar.recommend(network(), **how, schedule=schedule)
    assert not advice.leave
    assert float(recipe.model[2].temperature) == pytest.approx(advice.temperature, rel=1e-6)
    assert recipe.changes == {"lr": advice.lr}
    assert advice.lr != 0.01
    assert recipe.report() == {"lr_factor": pytest.approx(advice.lr / 0.01), "left": False}


def test_an_optimizer_of_ones_own_leaves_the_model():
    rmsprop = torch.optim.RMSprop(network().parameters(), lr=0.01)
    assert tstar.recommend(network(), optimizer=rmsprop, steps=400, batch_size=64).leave
    recipe = prepared(optimizer="./kit.py:lion", lr=0.01)
    assert isinstance(recipe.model[2], nn.Linear)
    assert recipe.changes == {}
    assert recipe.report() == {"lr_factor": 1.0, "left": True}
