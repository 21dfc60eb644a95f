"""The library's messages in the words of a command."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from torch import nn

import tstar
from tstar.cli.app import _load_commands, app
from tstar.cli.wording import asked, in_options
from tstar.formula.cautions import TEXTS

NETWORKS = """
from torch import nn

def sigmoid(num_classes):
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, num_classes), nn.Sigmoid())

class two(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.a, self.b = nn.Linear(4, num_classes), nn.Linear(4, num_classes)

    def forward(self, x):
        return self.a(x), self.b(x)
"""


@pytest.fixture(scope="module")
def program():
    _load_commands()
    return typer.main.get_command(app)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pass num_classes=…, or csg=….", "pass --classes, or --csg."),
        ("num_classes must be given", "--classes must be given"),
        ("pass scenario='finetune'.", "pass --scenario finetune."),
        ("got lr=-1e-05.", "got --lr -1e-05."),
        ("lr=0.1 and lr=inf, steps=500.", "--lr 0.1 and --lr inf, --steps 500."),
        ("for batches of 64; pass batch_size for", "for batches of 64; pass --batch-size for"),
        ("pass steps= to choose", "pass --steps to choose"),
        ("coefficients='a b.json'", "--coefficients 'a b.json'"),
        ("Check with tstar.check, or see tstar.csg.", "Check with tstar check, or see tstar csg."),
    ],
)
def test_keywords_become_options(program, before, after):
    assert in_options(before, asked(program, ["temperature"])) == after


@pytest.mark.parametrize(
    "text",
    [
        "pass allow_bias=True or size=32",  # not an option of this command
        "found in runs/lr=0.1/a.db and batch_size/a.db and lr=0.1/a.db",
        "got 'lr=0.1' and 'batch_size'",
        "lr == 0.1, optimizer=optimizer",
        "tstar.temper(model, T, lr=0.1) and tstar.temperature(512, batch_size=64)",
        "the steps, the samples and csg",
        "label_smoothings and label_smoothing.py",
    ],
)
def test_anything_else_stays(program, text):
    assert in_options(text, asked(program, ["temperature"])) == text


def test_without_a_command_nothing_changes():
    assert in_options("pass steps=…, see tstar.check", None) == "pass steps=…, see tstar.check"


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["temperature", "--features", "3"], "--csg"),
        (["data", "show", "digits"], "--download"),
        (["fit", "runs.db"], "--skip"),
    ],
)
def test_the_command_is_the_one_that_the_words_name(program, words, option):
    assert any(option in parameter.opts for parameter in asked(program, words).params)


def test_the_program_is_meant_where_no_command_is_named(program):
    assert asked(program, ["--version"]) is program
    assert asked(program, ["data", "nosuch"]) is program.commands["data"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["csg", "nosuch"], "set --data-root or TSTAR_DATA"),
        (["csg", "no/such.npz"], "set --data-root or TSTAR_DATA"),
        (
            ["recommend", "--model", "mlp", "--data", "nosuch"],
            "set --data-root or TSTAR_DATA",
        ),
        (["check", "--model", "mlp", "--data", "nosuch"], "set --data-root or TSTAR_DATA"),
        (
            ["temperature", "--features", "64", "--epochs", "10"],
            "only with --samples and --batch-size; pass them, or --steps.",
        ),
        (["temperature", "--features", "64", "--variant", "cn"], "pass --classes"),
        (
            ["recommend", "--model", "./net.py:sigmoid", "--classes", "3"],
            "say --loss cross_entropy",
        ),
        (["recommend", "--model", "./net.py:two", "--classes", "3"], "pass --head b to name"),
        (["check", "--model", "./net.py:two", "--data", "./d.npz"], "pass --head b to name"),
        (["fold", "nb.pt"], "pass --allow-bias to add one"),
        (["fold", "ln.pt"], "use tstar.fold, which keeps it as a layer"),
    ],
)
def test_the_messages_that_exist(main, monkeypatch, tmp_path, words, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TSTAR_DATA", str(tmp_path / "data"))
    Path("net.py").write_text(NETWORKS, encoding="utf-8")
    np.savez("d.npz", x_train=np.ones((9, 4)), y_train=np.arange(9) % 3, x_test=np.ones((3, 4)), y_test=np.arange(3))  # fmt: skip
    model = tstar.temper(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3, bias=False)), 2.0)
    torch.save(model.state_dict(), "nb.pt")
    layered = tstar.temper(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3)), 2.0, norm="layer")
    torch.save(layered.state_dict(), "ln.pt")
    code, lines = main(*words)
    assert code == 1
    assert said in " ".join(lines)
    assert not re.search(r"\b[a-z_]+=", " ".join(lines))


def test_warnings_too(main, monkeypatch):
    def warn(*given, **how):
        warnings.warn("pass batch_size", UserWarning, stacklevel=1)
        raise tstar.TstarError("no steps=…")

    monkeypatch.setattr("tstar.formula.equation.explain", warn)
    _, lines = main("temperature", "--features", "8")
    assert lines == ["warning pass --batch-size", "error no --steps"]


def test_notices_name_options_and_never_keywords(program, run):
    for _, text in TEXTS.values():
        told = in_options(text, asked(program, ["recommend"]))
        assert not re.search(r"(?<!\.\.\., )\b[a-z_]+=\S", told), told
    words = ["--features", "64", "--classes", "10", "--optimizer", "sgd", "--lr", "0.1"]
    out = run("temperature", *words, "--steps", "500").stdout
    assert "pass --batch-size for a T" in " ".join(out.split())


def test_what_the_messages_name_can_be_said(run):
    Path("net.py").write_text(NETWORKS, encoding="utf-8")
    words = ["recommend", "--classes", "3", "--json", "--model"]
    assert json.loads(run(*words, "./net.py:two", "--head", "b").stdout)["head"] == "b"
    told = run(*words, "./net.py:sigmoid", "--loss", "cross_entropy").stdout
    assert json.loads(told)["head"] == "2"
