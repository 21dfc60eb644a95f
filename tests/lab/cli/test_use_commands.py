"""The commands of the use flow, as a user types them."""

import json
import re
from dataclasses import fields

import numpy as np
import pytest

import tstar
from tests.test_package import loaded_by
from tstar.errors import TstarError
from tstar.formula import explain
from tstar.lab.data import open_data
from tstar.recipes import rows
from tstar.training import Training

SMALL = ["check", "--model", "mlp", "--features", "8", "--data", "digits", "--seeds", "2"]
SMALL += ["--steps", "20", "--budget", "5"]


def test_temperature_prints_the_value_and_its_terms(run):
    shown = run("temperature", "--features", "2048", "--classes", "8", "--csg", "3.85").stdout
    assert shown.startswith("T* = 24.89, with a BatchNorm before the output layer.")
    assert "γ·ln csg" in shown
    found = json.loads(run("temperature", "--features", "64", "--classes", "10", "--json").stdout)
    assert found["temperature"] == pytest.approx(5.3538, abs=1e-4)


def test_recommend_reads_the_steps_of_the_data_and_measures_no_csg(run, monkeypatch):
    monkeypatch.setattr("tstar.difficulty", None)
    words = ("recommend", "--model", "mlp", "--features", "64", "--data", "digits", "--json")
    how = ("--optimizer", "sgd", "--lr", "0.1", "--batch-size", "32")
    advice = json.loads(run(*words, *how, "--epochs", "3").stdout)
    assert advice["case"]["num_classes"] == 10
    steps = json.loads(run(*words, *how, "--steps", "135").stdout)  # 3 · ceil(1437 / 32)
    assert advice["temperature"] == steps["temperature"]


def test_every_field_of_a_training_is_an_option(run, monkeypatch):
    given = {}
    monkeypatch.setattr("tstar.advice.recommend", lambda *a, **known: given.update(known))
    monkeypatch.setattr("tstar.lab.cli.use_commands.answer", lambda *a: None)
    wanted = {"optimizer": "adamw", "lr": 0.1, "tuned": True, "epochs": 2.5, "samples": 9}
    words = [f"--{n}" if v is True else f"--{n}={v}" for n, v in wanted.items()]
    run("recommend", "--model", "mlp", "--classes", "3", *words)
    assert given.keys() >= {item.name for item in fields(Training)}
    assert given.items() >= wanted.items()


def test_recipes_prints_the_whole_table(run):
    shown = run("recipes").stdout
    assert [row.name for row in rows() if row.name not in shown] == []


def test_recommend_looks_names_up_below_the_data_root(run, tmp_path):
    x, y = np.random.default_rng(0).random((40, 3)), np.arange(40) % 4
    (tmp_path / "root").mkdir()
    np.savez(tmp_path / "root" / "mine.npz", x_train=x, y_train=y)
    words = ("recommend", "--model", "mlp", "--features", "8", "--json", "--data")
    for name, classes in (("mine", 4), ("digits", 10)):
        advice = json.loads(run(*words, name, "--data-root", "root").stdout)
        assert advice["case"]["num_classes"] == classes
    with pytest.raises(TstarError, match="Unknown data set 'mine'"):
        run(*words, "mine")


@pytest.fixture
def stored(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(240) % 12
    means, noise = rng.normal(size=(12, 16, 16, 3)), rng.normal(size=(240, 16, 16, 3))
    x = np.clip(120 + 12 * means[y] + 45 * noise, 0, 255).astype(np.uint8)
    (tmp_path / "root").mkdir()
    np.savez(tmp_path / "root" / "set.npz", x_train=x, y_train=y)
    return tmp_path / "root" / "set.npz"


def test_csg_says_what_the_library_says(run, stored):
    found = json.loads(run("csg", str(stored), "--json", "--seed", "3", "--samples", "15").stdout)
    expected = tstar.csg(open_data(stored), seed=3, samples=15)
    assert found["csg"] == expected.value
    assert found["interval"] == list(expected.interval)
    assert found["temperatures"].keys() == {"64", "128", "256", "512", "768", "1024", "2048"}
    assert found["temperatures"]["512"] == explain(512, 12, expected.value).temperature
    named = json.loads(run("csg", "set", "--data-root", str(stored.parent), "--json").stdout)
    assert named["csg"] == tstar.csg(open_data(stored)).value
    with pytest.raises(TstarError, match="It was not found below the data root"):
        run("csg", "set", "--data-root", str(stored.parent / "elsewhere"))


def test_check_trains_the_recipe_that_recommend_prints(run):
    shown = run(*SMALL).stdout
    assert shown.startswith("Do this:")
    for text in ("your model as it is", "In all 20 steps with 2 seeds"):
        assert text in shown
    record = json.loads(run(*SMALL, "--tuned", "--scenario", "finetune", "--json").stdout)
    told = record["advice"]["case"]["training"]
    assert (told["tuned"], told["scenario"], told["steps"]) == (True, "finetune", 20)
    assert (record["steps"], len(record["plain"])) == (20, 2)


RECOMMEND = ["recommend", "--model", "mlp", "--features", "8"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "--model", "resnet1", "--data", "digits"], "did you mean 'resnet10'"),
        (["check", "--model", "mlp", "--data", "digit"], "did you mean 'digits'"),
        ([*SMALL[:-1], "0.0001"], "minutes to it"),
        ([*RECOMMEND, "--data", "digits", "--classes", "7"], "either --data PATH or --classes K"),
        (RECOMMEND, "either --data PATH or --classes K"),
    ],
)
def test_errors_say_what_to_do(run, words, message):
    with pytest.raises(TstarError, match=re.escape(message)):
        run(*words)


@pytest.mark.parametrize("module", ["use_commands", "report_commands", "package_commands"])
def test_the_commands_load_nothing_heavy(module):
    assert loaded_by(f"import tstar.lab.cli.{module}") == set()
