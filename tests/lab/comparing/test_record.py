"""A comparison: rows, marks and verdicts, and what its files say."""

import csv
import re
import statistics
from dataclasses import replace

import pytest

from tests.lab.comparing.planted import BETTER, DEFAULT, NOISE, runs
from tstar.lab.comparing import Comparison, Run


def rows_of(**scores):
    return {row.method: row for row in Comparison(tuple(runs(**scores))).rows()}


def test_mean_spread_and_marks():
    rows = rows_of(default=DEFAULT, better=BETTER, noise=NOISE)
    assert rows["better"].mean == pytest.approx(100 * statistics.mean(BETTER))
    assert rows["better"].sd == pytest.approx(100 * statistics.stdev(BETTER))
    assert rows["better"].n == 5
    marks = Comparison(tuple(runs(default=DEFAULT, better=BETTER, noise=NOISE))).table().marks
    assert [marks[i, "accuracy [%]"] for i in range(3)] == ["second", "best", "second"]  # a tie


def test_verdicts_are_not_fooled_by_noise():
    rows = rows_of(default=DEFAULT, better=BETTER, noise=NOISE)
    assert rows["better"].paired.verdict == "better"
    assert rows["noise"].paired.verdict == "no evidence"
    assert rows["default"].paired is None
    two = rows_of(default=DEFAULT[:2], better=[0.9, 0.92001])
    assert two["better"].paired.verdict == "no evidence"
    said = Comparison(tuple(runs(default=DEFAULT, better=BETTER, noise=NOISE))).verdicts()
    assert said == [
        "better than default (Holm, 5 %): better",
        "no evidence of a difference at n = 5: noise",
    ]


def test_a_failed_run_is_shown_left_out_of_the_pairs_and_never_marked():
    found = Comparison(tuple(runs(default=DEFAULT, shaky=[0.99, None, 0.98, 0.99, 0.97])))
    shaky = found.rows()[1]
    assert (shaky.n, shaky.failed) == (4, 1)
    assert found.table().marks == {}
    assert shaky.paired.n == 4
    assert shaky.mean == pytest.approx(98.25)
    assert "4 (1 failed)" in str(found)
    assert "shaky: no teacher" in str(found)
    gone = rows_of(default=DEFAULT, gone=[None] * 5)["gone"]
    assert (gone.mean, gone.paired, gone.trained) == (None, None, "–")


def test_a_diverged_run_counts_as_chance_and_is_shown():
    gone = [Run("wild", seed, "diverged", test_accuracy=0.1, error="NaN") for seed in range(5)]
    found = Comparison((*runs(default=DEFAULT), *gone))
    wild = found.rows()[1]
    assert (wild.n, wild.failed, wild.diverged) == (5, 0, 5)
    assert wild.mean == pytest.approx(10.0)
    assert wild.paired.verdict == "worse"
    assert "5 (5 diverged)" in str(found)


def test_markdown_csv_and_terminal_say_the_same(tmp_path):
    found = Comparison(tuple(runs(default=DEFAULT, better=BETTER, noise=NOISE)))
    lines = str(found).splitlines()
    assert re.match(r"\| method +\| accuracy .* \| n +\| cost +\| trained +\| vs", lines[2])
    assert "**85.40 ± 2.41**" in lines[5]
    assert "<u>81.00 ± 1.58</u>" in lines[4]
    paths = found.save(tmp_path / "new", about="how")
    assert [p.name for p in paths] == ["table.md", "runs.csv", "table.csv"]
    assert paths[0].read_text(encoding="utf-8").startswith("how\n")
    with paths[1].open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 15
    with paths[2].open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert float(table[1]["mean"]) == pytest.approx(85.4)
    assert float(table[1]["paired_p_t"]) == pytest.approx(found.rows()[1].paired.p_t)
    assert table[0]["paired_p_t"] == ""
    assert "**85.40 ± 2.41**" in found.table().text()


def test_the_tables_say_what_was_trained():
    plain = runs(default=DEFAULT, advised=BETTER, left=NOISE, insert_ln=NOISE)
    what = {
        "default": {"temperature": 1.0},
        "advised": {"temperature": 2.0374, "norm": "batch", "lr_factor": 3.0},
        "left": {"temperature": 1.0, "left": True},
    }
    found = Comparison(tuple(replace(run, **what.get(run.method, {})) for run in plain))
    said = ["plain", "BN, T = 2.04, lr ×3", "left as it is", "–"]
    assert [row.trained for row in found.rows()] == said
    assert [*found.table().frame["trained"]] == said
