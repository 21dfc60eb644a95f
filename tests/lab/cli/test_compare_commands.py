"""``tstar compare`` from the outside: the table, the files, and what it refuses."""

import csv
from pathlib import Path

import pytest

from tstar import TstarError
from tstar.lab import load_runs

QUICK = "compare --data digits --samples 60 --model mlp --epochs 1 --no-augment --seeds 2"
QUICK = QUICK.split()


def test_a_table_on_stdout_its_files_and_a_store_that_is_resumed(run):
    words = [*QUICK, "--methods", "insert-ln,temperature-scaling"]
    first = run(*words)
    assert "no evidence of a difference at n = 2" in first.stdout
    assert {path.name for path in Path("tstar-compare").iterdir()} == {
        *("table.md", "table.csv", "runs.db", "runs.db.owner")
    }
    markdown = Path("tstar-compare/table.md").read_text(encoding="utf-8")
    assert "torch" in markdown
    assert "| insert-ln |" in markdown
    with Path("tstar-compare/table.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows] == ["default", "insert-ln", "temperature-scaling"]
    assert rows[0]["mean"] == rows[2]["mean"]  # temperature scaling never changes a class
    finished = [*load_runs("tstar-compare/runs.db")["finished"]]
    assert len(finished) == 3 * 2
    assert run(*words).stdout == first.stdout
    assert [*load_runs("tstar-compare/runs.db")["finished"]] == finished


def test_an_adjustable_network_is_small(run):
    run(*QUICK, "--methods", "sqrt-m", "--store", "my.db")
    assert {*load_runs("my.db")["temperature"]} == {1.0, 8.0}


def test_a_network_whose_width_is_fixed_and_a_method_of_your_own(run):
    Path("mine.py").write_text(
        "from torch import nn\nfrom tstar.lab import methods\n"
        "def net(num_classes):\n"
        "    parts = nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, num_classes)\n"
        "    return nn.Sequential(*parts)\n"
        "def mine(model, facts):\n"
        "    return methods.get('fixed', temperature=2.0).prepare(model, facts)\n",
        encoding="utf-8",
    )
    words = [*QUICK, "--model", "./mine.py:net", "--methods", "./mine.py:mine"]
    run(*words)
    rows = load_runs("tstar-compare/runs.db")
    assert rows["method"].value_counts().to_dict() == {"default": 2, "./mine.py:mine": 2}
    with pytest.raises(TstarError, match="takes no num_features"):
        run(*words, "--features", "64")


def test_no_success_is_an_error(run):
    with pytest.raises(TstarError, match=r"No run succeeded \(2 failed or diverged\)"):
        run(*QUICK, "--methods", "default", "--lr", "1e30", "--epochs", "3")
    assert Path("tstar-compare/table.md").exists()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--methods", "defualt"], "default"),
        (["--optimizer", "sdg"], "sgd"),
        (["--data", "no-such-data"], "no-such-data"),
    ],
)
def test_bad_input_is_an_error_of_the_package(run, options, match):
    with pytest.raises(TstarError, match=match):
        run(*QUICK, *options)
    assert not Path("tstar-compare/table.md").exists()
