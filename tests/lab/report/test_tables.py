"""Tables: pandas writes them, and whatever is in a name stays text."""

import io

import numpy as np
import pandas as pd
import pytest

from tests.lab.report.planted import TASKS, rows
from tstar import TstarError
from tstar.lab.report.own_tables import advice_table, conditions_table, data_table, methods_table
from tstar.lab.report.records import load
from tstar.lab.report.tables import Table, marked

NASTY = "<b>=x|y_z& $1$\x1b[31m"


def small():
    frame = pd.DataFrame({"name": [NASTY, "plain"], "acc. [%]": [12.345, None], "n": [18000, 2]})
    return Table(
        "small",
        "A & B_1",
        frame,
        "How to read it.",
        {"acc. [%]": 2},
        marks={(0, "acc. [%]"): "best"},
        signs={(0, "acc. [%]"): "~"},
    )


def test_cells_as_people_write_them():
    texts = small().texts()
    assert texts["acc. [%]"].tolist() == ["~12.35", "–"]
    assert texts["n"].tolist() == ["18,000", "2"]
    assert texts["name"][0] == r"<b>=x|y_z& $1$\x1b[31m"
    tiny = Table("t", "t", pd.DataFrame({"x": [-0.001]}), digits={"x": 2})
    assert tiny.texts()["x"][0] == "0.00"


def test_html_marks_and_escapes():
    html = small().html()
    assert "<b>" not in html
    assert "&lt;b&gt;=x|y_z&amp; $1$" in html
    assert "~12.35" in html
    assert "font-weight: bold" in html
    assert 'class="sortable"' in html
    assert html == small().html()


def test_markdown_marks_and_escapes():
    text = small().markdown()
    assert text.startswith("**A &amp; B\\_1**\n\n| name")
    assert "**~12.35**" in text
    assert r"&lt;b&gt;=x\|y\_z&amp;" in text
    assert text.endswith("How to read it.\n")


def test_latex_marks_and_escapes():
    text = small().latex()
    assert r"\textbf{\textasciitilde 12.35}" in text
    assert r"y\_z\& \$1\$" in text
    assert r"\caption{A \& B\_1}" in text
    greek = Table("g", "t", pd.DataFrame({"α": ["±"]}))
    assert r"$\alpha$" in greek.latex()
    assert r"$\pm$" in greek.latex()


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_cell_of_a_csv_is_a_formula(start):
    """Not even one that starts with a line break: a spreadsheet looks past it."""
    frame = pd.DataFrame({f"{start}head": [f"{start}1+1", -1.5]})
    text = Table("t", "t", frame).csv()
    read = pd.read_csv(io.StringIO(text), dtype=str)
    for cell in (read.columns[0], read.iloc[0, 0]):
        assert cell[0] not in "=+-@\t\r\n"
        assert not any(ord(character) < 32 for character in cell)
    assert read.iloc[1, 0] == "-1.5"  # a number stays one


def test_a_terminal_shows_text_not_markup():
    text = small().text()
    assert text.startswith("A & B_1\n\nname")
    assert text.endswith("How to read it.")
    assert "**~12.35**" in text
    assert "<b>=x|y_z" in text
    assert "\x1b" not in text


def test_ties_share_a_mark_and_one_alone_is_not_best():
    found = marked(pd.Series([98.401, 98.6, 98.399, 98.1], name="x"))
    assert found == {(0, "x"): "second", (1, "x"): "best", (2, "x"): "second"}
    assert marked(pd.Series([1.0, None, None], name="y")) == {}


def test_the_advice_compares_like_with_like(records):
    frame = advice_table(records).frame.set_index("")
    plain = np.mean([rows(records, norm="none", temperature=1.0)])
    assert frame.loc["plain", "accuracy [%]"] == pytest.approx(100 * plain)
    gain = frame.loc["BN, the law's T", "accuracy [%]"] - frame.loc["plain", "accuracy [%]"]
    assert float(frame.loc["BN, the law's T", "over plain"]) == pytest.approx(gain, abs=0.006)
    best = frame.loc["BN, best T of the grid"]
    assert best["search"] == "a grid of runs"
    law = frame.loc["BN, the law's T"]
    wanted = best["accuracy [%]"] - law["accuracy [%]"]
    assert law["below best T"] == pytest.approx(wanted)
    marks = advice_table(records).marks
    assert sorted(marks.values()) == ["best", "second"]


def test_two_conditions_have_no_interval(make_store):
    frame = advice_table(load(make_store(tasks=TASKS[:1]))).frame
    assert "95 % interval" not in frame.columns
    with pytest.raises(TstarError, match="No condition has BN"):
        advice_table(load(make_store("none.db", tasks=TASKS[:1], norms=("none",))))


def test_one_row_per_condition(records):
    table = conditions_table(records)
    assert len(table.frame) == 12
    for sweep, row in zip(records.sweeps, table.frame.to_dict("records"), strict=True):
        assert row["best T"] == sweep.ranking[0]
        assert row["best accuracy [%]"] == pytest.approx(100 * sweep.seen(sweep.ranking[0]).mean())
        bn = sweep.facts["norm"] == "batch"
        assert (row["law's T"] == row["law's T"]) == bn  # it presupposes BN
        assert row["at T = 1 [%]"] == pytest.approx(100 * sweep.seen(1.0).mean())


def test_a_law_outside_the_grid_has_a_star(make_store):
    table = conditions_table(load(make_store(grid=(8.0, 16.0, 32.0), widths=(64,))))
    assert set(table.signs.values()) == {"*"}
    assert len(table.signs) == 3
    assert table.texts()["law's T"].str.endswith("*").sum() == 3


def test_methods_are_ranked_on_the_same_seeds(make_store):
    def change(rows):
        kept = []
        for spec, result in rows:
            if spec.method == "insert-ln":
                result["test_accuracy"] = 0.9
            if spec.method == "sqrt-m":
                result["test_accuracy"] = 0.95
                if spec.seed == 2:
                    continue  # other seeds: not ranked
            kept.append((spec, result))
        return kept

    methods = ("insert-ln", "sqrt-m", "default")
    store = make_store(tasks=TASKS[:1], widths=(64,), methods=methods, change=change)
    table = methods_table(load(store))
    frame = table.frame.set_index("method")
    assert frame.loc["sqrt-m", "accuracy [%]"] == pytest.approx(95)
    assert frame["n"].to_dict() == {"insert-ln": 3, "sqrt-m": 2, "default": 3}
    found = {table.frame.loc[row, "method"]: mark for (row, _), mark in table.marks.items()}
    assert found == {"insert-ln": "best", "default": "second"}
    with pytest.raises(TstarError, match="No method"):
        methods_table(load(make_store("grid.db", tasks=TASKS[:1], widths=(64,), seeds=1)))


def test_one_row_per_data_set(records):
    frame = data_table(records).frame.set_index("data set")
    each = len(records.frame) // 3
    assert frame.loc["hard"].tolist() == ["image", 100, 25.5, 1000, each]
