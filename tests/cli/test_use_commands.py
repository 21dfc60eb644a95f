"""The command line of the use flow, as its user types it."""

import json
import subprocess
import sys

import numpy as np
import pytest
from torch import nn

from tstar.errors import TstarError


def tstar(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tstar", *words], capture_output=True, encoding="utf-8", check=False
    )


def test_temperature_prints_the_value_and_its_terms():
    done = tstar("temperature", "--features", "2048", "--classes", "8", "--csg", "3.85")
    assert done.returncode == 0
    assert done.stdout.startswith(
        "Train at T = 24.89, with a BatchNorm before the output layer, if"
    )
    assert "SGD at lr 0.1" in done.stdout  # what it is for, where the training is not told
    assert "γ·ln csg" in done.stdout
    assert "validated" in done.stdout


def test_temperature_json():
    done = tstar("temperature", "--features", "64", "--classes", "10", "--json")
    assert json.loads(done.stdout)["temperature"] == pytest.approx(5.3538, abs=1e-4)


def test_temperature_for_a_training():
    words = ("--features", "128", "--classes", "10", "--optimizer", "sgd", "--steps", "300")
    done = tstar("temperature", *words, "--lr", "0.1")
    assert done.returncode == 0
    assert done.stdout.startswith("Train at T = 3.")
    text = " ".join(done.stdout.split())  # whatever the width of the terminal
    assert "c·sqrt(lr·M)·(steps/(K·B·(1 − μ)))^p = 0.61·sqrt(0.1·128)" in text
    without = " ".join(tstar("temperature", *words).stdout.split())
    assert "Give the learning rate for a T that fits yours" in without


def test_temperature_and_recommend_give_one_answer():
    """One question, one answer: M = 512, K = 100, csg = 25.5, with and without the training."""
    import tstar as package

    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 512), nn.ReLU(), nn.Linear(512, 100))
    for extra in (
        {},
        {"scenario": "scratch"},
        {"scenario": "finetune"},
        {"optimizer": "sgd", "lr": 0.01, "steps": 200},
        {"optimizer": "sgd", "lr": 0.001, "steps": 200, "scenario": "finetune"},
        {"optimizer": "lion", "lr": 1e-4, "steps": 200},
    ):
        words = [word for name, value in extra.items() for word in (f"--{name}", str(value))]
        done = tstar(
            *("temperature", "--features", "512", "--classes", "100", "--csg", "25.5", "--json"),
            *words,
        )
        said, advice = json.loads(done.stdout), package.recommend(net, csg=25.5, **extra)
        if advice.lr_factor != 1:  # the same law, at the rate that the recipe has
            assert "higher-rate" in {notice["code"] for notice in said["notices"]}
            said = package.explain(
                512, 100, 25.5, **{**extra, "lr": advice.lr_factor * extra["lr"]}
            )
            said = said.to_dict()
        elif advice.leave:
            continue
        for name in ("temperature", "variant", "reason"):
            assert said[name] == advice.to_dict()[name], (extra, name)
        assert advice.to_dict()["verdict"].startswith(said["verdict"].rstrip(".")), extra


def test_an_error_is_one_line_and_debug_shows_the_traceback():
    done = tstar("temperature", "--features", "0")
    assert done.returncode == 1
    assert (
        done.stderr == "error --features must be a whole number of at least 1, got --features 0.\n"
    )
    assert "Traceback" in tstar("--debug", "temperature", "--features", "0").stderr


def test_version():
    import tstar as package

    assert tstar("--version").stdout.strip() == f"tstar {package.__version__}"


def test_help_lists_the_flows():
    out = tstar("--help").stdout
    assert "Use:" in out
    assert "temperature" in out


def test_recommend_measures_csg_only_where_the_formula_uses_it(run, monkeypatch):
    words = ("recommend", "--model", "mlp", "--features", "64", "--data", "digits", "--json")
    measured = json.loads(run(*words, "--scenario", "finetune").stdout)
    assert (measured["num_classes"], measured["csg"]) == (10, pytest.approx(0.11, abs=0.05))
    monkeypatch.setattr("tstar.difficulty.csg", None)
    told = ("--optimizer", "sgd", "--lr", "0.1", "--batch-size", "32")
    advice = json.loads(run(*words, *told, "--epochs", "3").stdout)
    assert advice["csg"] is None
    steps = json.loads(run(*words, *told, "--steps", "135").stdout)  # 3 · ceil(1437 / 32)
    assert advice["temperature"] == steps["temperature"]


def test_recommend_looks_names_up_below_the_data_root(run, tmp_path):
    x, y = np.random.default_rng(0).random((40, 3)), np.arange(40) % 4
    (tmp_path / "root").mkdir()
    np.savez(tmp_path / "root" / "mine.npz", x_train=x, y_train=y)
    words = ("recommend", "--model", "mlp", "--features", "8", "--json", "--data")
    for name, classes in (("mine", 4), ("digits", 10)):
        advice = json.loads(run(*words, name, "--data-root", "root").stdout)
        assert advice["num_classes"] == classes
    with pytest.raises(TstarError, match="'mine' is neither"):
        run(*words, "mine")


def test_classes_must_agree_with_the_data(run):
    words = ("recommend", "--model", "mlp", "--features", "8", "--data", "digits")
    with pytest.raises(TstarError, match="data have 10 classes, got --classes 7"):
        run(*words, "--classes", "7")
    with pytest.raises(TstarError, match="pass --data PATH or --classes K"):
        run(*words[:5])


def test_recommend_at_the_prompt(run):
    import tstar as package

    words = ["recommend", "--model", "resnet10", "--classes", "10", "--features", "64", "--json"]
    plan = ["--optimizer", "sgd", "--lr", "0.1", "--steps", "930"]
    advice = json.loads(run(*words, *plan).stdout)
    how = {"optimizer": "sgd", "lr": 0.1 * advice["lr_factor"], "steps": 930}
    assert advice["temperature"] == pytest.approx(package.temperature(64, 10, **how))
    assert "most similar trainings" in advice["expectation"]
