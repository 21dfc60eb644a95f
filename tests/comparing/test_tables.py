"""A comparison as Markdown, CSV and on a terminal."""

import csv
import io
import math
from dataclasses import replace

import pytest

from tests.comparing.planted import BETTER, DEFAULT, NOISE, runs
from tstar.comparing import summarize, to_csv, to_markdown, to_table
from tstar.comparing.tables import save


def test_markdown_and_csv_say_the_same(tmp_path):
    all_runs = runs(default=DEFAULT, better=BETTER, noise=NOISE)
    rows = summarize(all_runs)
    lines = to_markdown(rows).splitlines()
    assert lines[2].replace("\\", "").startswith("| method | accuracy [%] | n | cost |")
    assert "**85.40 ± 2.41**" in lines[5]
    assert "<u>81.00 ± 1.58</u>" in lines[4]
    table = list(csv.DictReader(io.StringIO(to_csv(rows))))
    assert float(table[1]["mean"]) == pytest.approx(85.4)
    assert float(table[1]["paired_p_t"]) == pytest.approx(rows[1].paired.p_t)
    assert table[0]["paired_p_t"] == ""
    paths = save(all_runs, rows, tmp_path / "new", baseline="default", about="how")
    assert [p.name for p in paths] == ["runs.csv", "table.csv", "table.md"]
    assert len(list(csv.DictReader(io.StringIO(paths[0].read_text(encoding="utf-8"))))) == 15
    assert paths[2].read_text(encoding="utf-8").startswith("how\n")


def test_the_terminal_table_marks_best_and_second():
    table = to_table(summarize(runs(default=DEFAULT, better=BETTER)))
    scores = list(table.columns[1].cells)
    for text, said, style in ((scores[1], "85.40", "bold"), (scores[0], "81.00", "underline")):
        assert text.plain.startswith(said)
        assert style in {str(text.style), *(str(span.style) for span in text.spans)}
    assert [column.header.plain for column in table.columns][4:] == ["trained", "vs default", "p"]
    assert math.isclose(len(table.rows), 2)


def test_the_tables_say_what_was_trained():
    plain = runs(default=DEFAULT, advised=BETTER, left=NOISE, insert_ln=NOISE)
    what = {
        "default": {"temperature": 1.0},
        "advised": {"temperature": 2.0374, "norm": "batch", "lr_factor": 3.0},
        "left": {"temperature": 1.0, "left": True},
    }
    rows = summarize([replace(run, **what.get(run.method, {})) for run in plain])
    said = ["plain", "BN, T = 2.04, lr ×3", "left as it is", "–"]
    assert [text.plain for text in to_table(rows).columns[4].cells] == said
    lines = to_markdown(rows).splitlines()[4:8]
    assert [line.split(" | ")[4] for line in lines] == said
    numbers = list(csv.DictReader(io.StringIO(to_csv(rows))))
    assert [n["temperature"] for n in numbers] == ["1.0", "2.0374", "1.0", ""]
    assert [n["norm"] for n in numbers] == ["none", "batch", "none", "none"]
    assert [n["lr_factor"] for n in numbers] == ["1.0", "3.0", "1.0", "1.0"]
    assert [n["left"] for n in numbers] == ["False", "False", "True", "False"]
