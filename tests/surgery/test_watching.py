"""The monitor sees what goes wrong, and says nothing where nothing does."""

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tstar
from tstar import TstarError, TstarWarning


def network():
    torch.manual_seed(0)
    return tstar.temper(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)), 3.0)


def epoch(model, optimizer, size=16):
    for _ in range(3):
        optimizer.zero_grad()
        x, y = torch.randn(size, 6), torch.arange(size) % 4
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def test_a_healthy_training_is_described():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = tstar.Schedule.linear(1, 3, 2).drive(model)
    look = tstar.watch(model, schedule=schedule, batch=torch.randn(32, 6), optimizer=optimizer)
    for _ in range(2):
        epoch(model, optimizer)
        schedule.step()
        (sight,) = look()
        assert sight.problems == ()
        assert sight.batches == 3
        assert sight.moved > 0
    assert sight.temperature == 3.0
    assert sight.speeds.gradient > 0
    assert json.loads(json.dumps(sight.to_dict()))["speeds"]["temperature"] == 3.0
    assert "norm saw 3 batches" in str(sight)


def test_a_head_that_does_not_move():
    model = network()
    look = tstar.watch(model)
    with pytest.warns(TstarWarning, match="does not train the tempered head"):
        epoch(model, torch.optim.SGD(model[0].parameters(), lr=0.1))
    with pytest.warns(TstarWarning, match="has not moved"):
        look()
    assert look()[0].problems  # still there; the warning came once


def test_a_norm_that_sees_nothing():
    model = network()
    look = tstar.watch(model)
    epoch(model, torch.optim.SGD(model.parameters(), lr=0.1), size=1)
    with pytest.warns(TstarWarning, match="seen no batch"):
        assert look()[0].batches == 0


def test_a_temperature_that_is_not_the_schedules():
    model = network()
    schedule = tstar.Schedule.constant(5.0)
    look = tstar.watch(model, schedule=schedule)
    epoch(model, torch.optim.SGD(model.parameters(), lr=0.1))
    with pytest.warns(TstarWarning, match="the schedule says 5"):
        look()


def test_a_plain_model_has_nothing_to_watch():
    with pytest.raises(TstarError, match="tempered head"):
        tstar.watch(nn.Linear(3, 2))
