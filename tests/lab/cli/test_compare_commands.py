"""``tstar compare`` from the outside: the table, the files, the JSON, and what it refuses."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tstar import TstarError
from tstar.lab.cli.app import _load_commands, app

_load_commands()
QUICK = "compare --data digits --train-samples 60 --test-samples 40 --model resnet10 --features 64"
QUICK += " --epochs 1 --no-augment --seeds 2"


def run(command: str, *more: str):
    return CliRunner().invoke(app, [*command.split(), *more])


def test_a_table_on_stdout_and_three_files(tmp_path):
    result = run(
        QUICK, "--methods", "insert-ln,temperature-scaling", "--output", str(tmp_path / "o")
    )
    assert result.exit_code == 0, result.output
    assert "insert-ln" in result.stdout
    assert "no evidence of a difference at n = 2" in result.stdout
    assert "default" in result.stdout  # the baseline was added
    markdown = (tmp_path / "o" / "table.md").read_text(encoding="utf-8")
    assert "torch" in markdown
    assert "| insert-ln |" in markdown
    with (tmp_path / "o" / "runs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 2
    scores = {(r["seed"], r["method"]): r["test_accuracy"] for r in rows}
    for seed in "01":  # temperature scaling never changes a class
        assert scores[seed, "default"] == scores[seed, "temperature-scaling"]


def test_json_is_all_there_is_on_stdout_and_an_adjustable_network_is_small(tmp_path):
    quick = QUICK.replace(" --features 64", "").replace("resnet10", "mlp")
    record = json.loads(
        run(quick, "--methods", "sqrt-m", "--json", "--output", str(tmp_path)).stdout
    )
    assert {row["method"] for row in record["rows"]} == {"default", "sqrt-m"}
    assert {run["temperature"] for run in record["runs"]} == {1.0, 8.0}
    assert record["stopped"] is False


def test_a_network_whose_width_is_fixed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(
        "from torch import nn\n"
        "def net(num_classes):\n"
        "    parts = nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, num_classes)\n"
        "    return nn.Sequential(*parts)\n",
        encoding="utf-8",
    )
    quick = QUICK.replace("--model resnet10 --features 64", "--model ./net.py:net")
    result = run(quick, "--methods", "default", "--json")
    assert result.exit_code == 0, result.output
    assert [run["status"] for run in json.loads(result.stdout)["runs"]] == ["done", "done"]
    result = run(quick, "--methods", "default", "--features", "64")
    assert "takes no num_features; add it there" in " ".join(result.stdout.split())
    assert result.exit_code == 1
    assert "No run succeeded (2 failed or diverged)" in str(result.exception)
    assert Path("tstar-compare/table.md").exists()


def test_the_methods_are_listed():
    result = run("compare --methods list")
    assert result.exit_code == 0
    assert "logit-standardization" in result.stdout.split()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--methods", "defualt"], "default"),
        (["--optimizer", "sdg"], "sgd"),
        (["--data", "no-such-data"], "no-such-data"),
    ],
)
def test_bad_input_is_an_error_of_the_package(options, match, tmp_path):
    result = run(QUICK, *options, "--output", str(tmp_path))
    assert isinstance(result.exception, TstarError)
    assert match in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_an_interrupt_keeps_what_had_finished(tmp_path, monkeypatch):
    from tstar.lab.comparing import harness

    honest, calls = harness._Bench.run, []

    def interrupted(self, name, method):
        calls.append(name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return honest(self, name, method)

    monkeypatch.setattr(harness._Bench, "run", interrupted)
    result = run(QUICK, "--methods", "default,sqrt-m", "--output", str(tmp_path))
    assert result.exit_code == 130
    with (tmp_path / "runs.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 2
