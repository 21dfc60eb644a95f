"""One run of a method, and the fields of a training that change it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from tstar.errors import TstarError
from tstar.lab import methods
from tstar.lab.training import Config
from tstar.lab.training.parts import make_parts
from tstar.lab.training.running import _best, run, step_seconds

SHORT = Config(epochs=1, batch_size=64, lr=0.05)


def make():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))


def do(data, config=SHORT, method="default", **options):
    return run(methods.get(method), make, data, config, num_classes=10, **options)


@pytest.mark.parametrize(
    "changed",
    [
        *({"clip_norm": 0.1}, {"nesterov": True}),
        *({"optimizer": "adam", "beta1": 0.5}, {"optimizer": "adam", "beta2": 0.9}),
    ],
    ids=str,
)
def test_each_field_changes_the_training(data, changed):
    base = replace(SHORT, **{k: v for k, v in changed.items() if k == "optimizer"})
    assert do(data, replace(base, **changed)).result.nll != do(data, base).result.nll


def test_the_data_are_made_ready_once_for_all_candidates_of_a_search(data, monkeypatch):
    import tstar.lab.training.loop as loop
    import tstar.lab.training.running as running

    made = []

    def counted(*arguments):
        made.append(arguments)
        return make_parts(*arguments)

    monkeypatch.setattr(loop, "make_parts", counted)
    monkeypatch.setattr(running, "make_parts", counted)
    trained = run(methods.get("temperature-check", points=3), make, data, SHORT, num_classes=10)
    assert len(made) == 1
    assert trained.trainings == len(trained.result.extra["trials"]) == 3
    assert pytest.approx(trained.head[0]) in [T for T, _ in trained.result.extra["trials"]]


@pytest.mark.parametrize("method", ["fixed", "learned-temperature"])
def test_the_output_layer_is_looked_for_once(data, method, monkeypatch):
    from tstar import output_layer

    looked, look = [], output_layer.run_copy
    monkeypatch.setattr(output_layer, "run_copy", lambda *a, **k: looked.append(a) or look(*a, **k))
    assert do(data, method=method).setting.head.path == "3"
    assert len(looked) == 1


@pytest.mark.parametrize(
    ("trials", "best"),
    [
        ([(0.1, 0.5), (1.1, 0.5), (10.0, 0.5)], 1.1),  # of equals the nearest to 1
        ([(10.0, 0.6), (1.0, 0.5), (0.1, None)], 10.0),
        ([(10.0, 0.0), (1.0, None)], 10.0),  # diverged
        ([(10.0, None), (2.0, None)], 2.0),
    ],
)
def test_the_best_trial_of_a_search(trials, best):
    assert _best(trials) == best


def test_a_method_is_told_how_many_samples_it_trains_on(data):
    trained = do(data)
    assert trained.setting.training.samples == len(trained.parts.y) < len(data.y_train)


def test_clipping_bounds_the_step(data):
    """With plain SGD a step is at most lr·clip_norm long."""
    config = Config(steps=1, batch_size=64, lr=1.0, momentum=0.0, weight_decay=0.0, clip_norm=0.01)
    config = replace(config, schedule="constant")
    torch.manual_seed(0)
    before = nn.utils.parameters_to_vector(make().parameters())
    after = nn.utils.parameters_to_vector(do(data, config).model.parameters())
    assert 0 < float((after - before).detach().norm()) <= 0.01 * 1.001


def test_the_classes_must_agree(data):
    with pytest.raises(TstarError, match="one output for each of the data's 7 classes, got 10"):
        run(methods.get("default"), make, data, SHORT, num_classes=7)


CLOCK = [0.0]


class Slow(nn.Module):
    """A model whose forward pass takes a known time."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
        self.calls = []

    def forward(self, x):
        self.calls.append(len(x))
        CLOCK[0] += 0.05
        return self.layers(x)


def test_the_time_of_a_step_is_measured_and_nothing_changes(data, monkeypatch):
    clock = SimpleNamespace(perf_counter=lambda: CLOCK[0])
    monkeypatch.setattr("tstar.lab.training.running.time", clock)
    config = Config(batch_size=32, epochs=1)
    model = Slow()
    before = model.layers[1].weight.detach().clone()
    state = torch.get_rng_state()
    assert step_seconds(model, make_parts(data, config, 0), config) == pytest.approx(0.05)
    assert torch.equal(model.layers[1].weight, before)
    assert torch.equal(torch.get_rng_state(), state)
    assert model.calls == []  # a copy was trained
