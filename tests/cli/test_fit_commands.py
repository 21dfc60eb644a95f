"""``tstar fit`` and ``tstar paper`` at the prompt."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from research.synthetic import PAPER_TASKS, planted_runs
from tstar import Coefficients, TstarError
from tstar.cli import fit_commands  # registers the commands
from tstar.cli.app import app

runner = CliRunner()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("fit") / "runs.csv"
    tasks = PAPER_TASKS[2:]
    planted_runs(widths=(64, 512), tasks=tasks, seeds=2, noise=0.005).to_csv(path, index=False)
    return str(path)


def invoke(*arguments):
    return runner.invoke(app, list(arguments), catch_exceptions=False)


def test_fit_prints_and_saves(store, tmp_path):
    out = tmp_path / "mine.json"
    result = invoke("fit", store, "--restarts", "1", "--bootstrap", "3", "-o", str(out))
    assert result.exit_code == 0
    assert "T* = clip(" in result.stdout
    assert "over conditions" in result.stdout
    assert Coefficients.load(out).variant == "csgcn"


def test_fit_json_is_json_alone(store):
    result = invoke(
        "fit",
        store,
        "--variant",
        "cn",
        "--restarts",
        "1",
        "--bootstrap",
        "0",
        "--metric",
        "test",
        "--json",
    )
    data = json.loads(result.stdout)
    assert data["metric"] == "test"
    assert data["coefficients"]["delta"] < 0
    assert data["intervals"] == []


def test_fit_tables(store):
    data = json.loads(invoke("fit", store, "--per-environment", "--restarts", "1", "--json").stdout)
    assert [row["model"] for row in data["rows"]][-2:] == ["Avg.", "S.D."]
    assert data["rows"][0]["alpha"] is None
    text = invoke("fit", store, "--per-environment", "--restarts", "1").stdout
    assert "S.D." in text
    assert "–" in text


def test_fit_refuses_two_things_at_once(store):
    with pytest.raises(TstarError, match="at a time"):
        invoke("fit", store, "--per-environment", "--cross-validate")
    with pytest.raises(TstarError, match="does not exist"):
        invoke("fit", "nowhere.db")


@pytest.mark.slow
def test_fit_cross_validates_and_compares(store):
    data = json.loads(invoke("fit", store, "--cross-validate", "--restarts", "1", "--json").stdout)
    assert {row["optimization"] for row in data["rows"]} == {"CO", "GO"}
    data = json.loads(
        invoke(
            "fit", store, "--alternatives", "--variant", "cn", "--restarts", "1", "--json"
        ).stdout
    )
    assert len(data["rows"]) == 4


def test_paper_lists_and_shows():
    listing = invoke("paper").stdout
    assert "datasets" in listing
    assert "coefficients" in json.loads(invoke("paper", "--json").stdout)
    assert "**72.39**" in invoke("paper", "datasets").stdout
    assert "53.61%" in invoke("paper", "transformers").stdout


def test_paper_json():
    data = json.loads(invoke("paper", "coefficients", "--json").stdout)
    assert data["paper"][0] == {
        "variant": "base",
        "alpha": 0.7239,
        "beta": -4.706,
        "gamma": None,
        "delta": None,
    }


def test_paper_beside_runs(store):
    data = json.loads(
        invoke("paper", "coefficients", "--runs", store, "--metric", "val", "--json").stdout
    )
    assert [row["variant"] for row in data["yours"]] == ["base", "csg", "cn", "csgcn"]
    own = invoke("paper", "datasets", "--runs", store).stdout.partition("The same from your runs")[
        2
    ]
    assert "task0" in own


def test_paper_pages():
    assert "Friedman" in invoke("paper", "--analysis").stdout
    assert "recomputed" in invoke("paper", "--checks").stdout


def test_the_commands_load_nothing_heavy():
    code = (
        "import sys, tstar.cli.fit_commands;"
        "heavy = {'pandas', 'scipy', 'torch', 'numpy'} & set(sys.modules);"
        "sys.exit(', '.join(heavy) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    broken = code.replace("import sys,", "import sys, numpy,")
    assert subprocess.run([sys.executable, "-c", broken], capture_output=True).returncode == 1


def test_eighty_columns_hold_every_number(monkeypatch, capsys):
    """Names are folded where there is little room; no number is cut."""
    import pandas as pd
    from rich.console import Console

    monkeypatch.setattr(fit_commands, "wide_console", lambda: Console(width=80))
    numbers = {"alpha": 5.539, "beta": -84.84, "accuracy": 39.857, "gain": -0.3638}
    row = {"dataset": "caltech101_32+tinyimagenet_32", "model": "vgg9", "conditions": 3.0}
    bn = {f"{name}_bn": value for name, value in numbers.items() if name != "gain"}
    fit_commands._show(pd.DataFrame([row | numbers | bn]), "α and β", as_json=False)
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    for text in ("5.539", "-84.84", "39.86", "-0.3638"):
        assert text in shown
