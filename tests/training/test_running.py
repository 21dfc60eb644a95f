"""One run of a method, and the fields of a training that change it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import tstar
from tstar import methods
from tstar.data import load
from tstar.errors import TstarError
from tstar.training import Config
from tstar.training.parts import make_parts, pick_device
from tstar.training.running import run

SHORT = Config(epochs=1, batch_size=64, lr=0.05)


@pytest.fixture(scope="module")
def data():
    return load("digits").subset(300, 100)


def make():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))


def do(data, config=SHORT, method="default", **options):
    return run(methods.get(method), make, data, config, num_classes=10, **options)


@pytest.mark.parametrize(
    "changed",
    [
        *({"clip_norm": 0.1}, {"ema": 0.9}, {"mixup": 1.0}, {"dropout": 0.5}, {"nesterov": True}),
        *({"optimizer": "adam", "beta1": 0.5}, {"optimizer": "adam", "beta2": 0.9}),
    ],
    ids=str,
)
def test_each_field_changes_the_training(data, changed):
    base = replace(SHORT, **{k: v for k, v in changed.items() if k == "optimizer"})
    assert do(data, replace(base, **changed)).result.nll != do(data, base).result.nll


def test_the_data_are_made_ready_once_for_all_candidates_of_a_search(data, monkeypatch):
    import tstar.training.loop as loop
    import tstar.training.running as running

    made = []

    def counted(*arguments):
        made.append(arguments)
        return make_parts(*arguments)

    monkeypatch.setattr(loop, "make_parts", counted)
    monkeypatch.setattr(running, "make_parts", counted)
    trained = run(methods.get("temperature-check", points=3), make, data, SHORT, num_classes=10)
    assert len(made) == 1
    assert trained.trainings == len(trained.result.extra["trials"]) == 3
    assert trained.temperature in [T for T, _ in trained.result.extra["trials"]]


def test_dropout_leaves_no_trace(data):
    trained = do(data, replace(SHORT, dropout=0.5), "ours-cn")
    assert all(not module._forward_pre_hooks for module in trained.model.modules())


def test_clipping_bounds_the_step(data):
    """With plain SGD a step is at most lr·clip_norm long."""
    config = Config(steps=1, batch_size=64, lr=1.0, momentum=0.0, weight_decay=0.0, clip_norm=0.01)
    config = replace(config, schedule="constant")
    torch.manual_seed(0)
    before = nn.utils.parameters_to_vector(make().parameters())
    after = nn.utils.parameters_to_vector(do(data, config).model.parameters())
    assert 0 < float((after - before).detach().norm()) <= 0.01 * 1.001


def test_mixup_mixes_inputs_and_losses():
    from tstar.training.loop import _mixup

    x = torch.randn(8, 3)
    mixed, share, partner = _mixup(x, 0.4, 1, 2)
    assert torch.allclose(mixed, share * x + (1 - share) * x[partner])
    assert 0 <= share <= 1
    assert sorted(partner.tolist()) == list(range(8))
    assert _mixup(x, 0.4, 1, 3)[1] != share
    with pytest.raises(TstarError, match="not tokens"):
        _mixup(torch.ones(2, 3, dtype=torch.int64), 0.4, 0, 0)


def test_advised_is_what_recommend_says(data):
    config = replace(SHORT, steps=40)
    trained = do(data, config, "advised")
    torch.manual_seed(0)
    told = {"optimizer": "sgd", "lr": 0.05, "momentum": 0.9, "steps": 40, "batch_size": 64}
    advice = tstar.recommend(make(), **told, weight_decay=5e-4, scenario="scratch")
    assert trained.head == (pytest.approx(float(advice)), advice.norm is not None)


def test_the_classes_must_agree(data):
    with pytest.raises(TstarError, match="one output for each of the data's 7 classes, got 10"):
        run(methods.get("default"), make, data, SHORT, num_classes=7)


def test_samples_are_read_where_they_lie(data):
    """A batch of the parts is the batch of a copy, and nothing is copied."""
    parts = make_parts(data, SHORT, 0)
    from tstar.data import split

    train, val = split(data, 0.1, 0)
    rows = torch.tensor([5, 0, 7])
    assert torch.equal(parts.x[rows], data.x_train[train][rows])
    assert torch.equal(parts.x_val[:4], data.x_train[val][:4])
    assert parts.x._x.data_ptr() == data.x_train.data_ptr()
    assert torch.equal(parts.x_test[:], data.x_test)


def test_standardizing_in_small_parts_gives_the_same(monkeypatch):
    from tstar.data import augment

    x = torch.randint(0, 256, (50, 3, 8, 8), dtype=torch.uint8)
    whole = augment.standardizer(x)
    monkeypatch.setattr(augment, "_SMALL", 100)
    monkeypatch.setattr(augment, "_TOGETHER", 20)
    parts = augment.standardizer(x)
    assert torch.allclose(whole.mean, parts.mean)
    assert torch.allclose(whole.std, parts.std)
    assert np.isclose(float(whole.mean[0]), float(x[:, 0].float().mean()), rtol=1e-5)


def test_a_device_that_is_not_there_is_an_error():
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(TstarError, match="no device 'cuda'"):
        pick_device("cuda")
