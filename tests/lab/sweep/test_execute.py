"""One run: the model, the data and the method that its spec names, and what comes out."""

import dataclasses
import json
import math

import pytest
import torch
from torch import nn

import tstar
from tests.lab.sweep.small import do, rows_of, tiny
from tstar.lab.data import load
from tstar.lab.data.dataset import split
from tstar.lab.models import build
from tstar.lab.sweep.materials import DataKey, draw, load_data
from tstar.lab.sweep.plan import make_plan
from tstar.lab.sweep.run import run_sweep
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.study import parse_study
from tstar.lab.training import Config, train


def test_the_fixed_temperature_is_what_temper_does(path, inline):
    do(tiny('norm = "batch"\ntemperature = 3\nseed = 5'), path, inline())
    (row,) = rows_of(path).values()
    model = nn.Sequential(nn.Flatten(), build("mlp", 10, num_features=8, in_channels=64, seed=5))
    tempered = tstar.temper(model, 3.0, norm="batch")
    result = train(tempered, load("digits"), Config(epochs=1), seed=5)
    assert (row["val_accuracy"], row["nll"]) == (result.val_accuracy, result.nll)


def test_a_diverging_run_is_a_result(path, inline):
    study = tiny("temperature = 1", lr=1e30)
    tally = do(study, path, inline())
    (row,) = rows_of(path).values()
    assert (tally.diverged, tally.failed, row["status"]) == (1, 0, "diverged")
    assert row["val_accuracy"] is None
    assert row["error"] is None
    engine = inline()
    do(study, path, engine)
    assert engine.executed == []


def test_a_searching_method_is_one_run_with_the_cost_of_all(path, inline):
    study = parse_study(
        'csg = false\n[training]\nepochs = 1\n[[grid]]\ndataset = "digits"\nmodel = "mlp"\nnum_features = 8\n'
        'method = "temperature-check"\n[options.temperature-check]\npoints = 3'
    )
    do(study, path, inline())
    (row,) = rows_of(path).values()
    trials = json.loads(row["extra"])["trials"]
    assert row["trainings"] == len(trials) == 3
    assert row["val_accuracy"] == max(score for _, score in trials)
    assert any(math.isclose(row["temperature"], T, rel_tol=1e-6) for T, _ in trials)


def test_methods_record_the_temperature_that_they_trained_at(path, inline):
    study = tiny('method = ["ours-cn", "sqrt-m", "default", "temperature-scaling", "insert-ln"]')
    do(study, path, inline())
    found = {row["method"]: (row["temperature"], row["norm"]) for row in rows_of(path).values()}
    assert found["ours-cn"] == (pytest.approx(tstar.temperature(8, 10)), "batch")
    assert found["sqrt-m"] == (pytest.approx(math.sqrt(8)), "none")
    assert found["default"] == (1.0, "none")
    assert found["temperature-scaling"] == (1.0, "none")
    assert found["insert-ln"] == (None, "none")


def test_data_that_change_under_a_running_sweep_are_noticed(study, path, inline):
    with Store(path, create=True) as store:
        plan = make_plan(study, store)
        wrong = dataclasses.replace(
            plan, specs=(dataclasses.replace(plan.specs[0], data_checksum="0" * 64),)
        )
        tally = run_sweep(wrong, store, inline())
    assert tally.failed == 1
    (row,) = rows_of(path).values()
    assert "The checksum of the data of 'digits' has changed" in row["error"]


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def test_a_subset_of_classes_is_numbered_anew(digits):
    few = draw(digits, 4, None, 0.0, seed=1)
    assert few.num_classes == 4
    assert set(few.y_train.tolist()) == set(few.y_test.tolist()) == {0, 1, 2, 3}
    assert set(few.classes) < set(digits.classes)
    assert draw(digits, 4, None, 0.0, seed=1).checksum() == few.checksum()
    assert draw(digits, 4, None, 0.0, seed=2).classes != few.classes


def test_samples_are_drawn_in_proportion(digits):
    few = draw(digits, None, 100, 0.0, seed=0)
    assert len(few.y_train) == 100
    assert len(few.y_test) == len(digits.y_test)
    counts = torch.bincount(few.y_train)
    assert counts.min() >= 9
    assert counts.max() <= 11


def test_noise_changes_a_share_of_training_labels_and_no_test_label(digits):
    noisy = draw(digits, None, None, 0.3, seed=0)
    changed = (noisy.y_train != digits.y_train).double().mean().item()
    # A wrong label is never the true one. Binomial: 1,438 labels, s.d. 0.012.
    assert changed == pytest.approx(0.3, abs=0.05)
    assert torch.equal(noisy.y_test, digits.y_test)
    assert torch.equal(noisy.x_train, digits.x_train)


def test_the_held_out_part_has_its_share_of_the_wrong_labels_and_no_more(digits):
    noisy = draw(digits, None, None, 0.3, seed=0)
    wrong = (noisy.y_train != digits.y_train).float()
    for part in split(noisy, 0.5, seed=0):  # the seed that chose the wrong labels
        assert wrong[part].mean() == pytest.approx(0.3, abs=0.06)


def test_the_key_draws_what_it_says(digits):
    key = DataKey("digits", classes=3, samples=60, data_seed=5)
    assert load_data(key, None).checksum() == draw(digits, 3, 60, 0.0, seed=5).checksum()
