"""Tables: their marks, their numbers, and that a name is text in every format."""

import csv
import io
import statistics

import pandas
import pytest
from rich.console import Console

from tstar import TstarError
from tstar.report.records import load
from tstar.report.tables.cells import Block, Cell, Table, ranked
from tstar.report.tables.markup import latex, to_csv, to_html, to_latex, to_markdown, to_rich
from tstar.report.tables.measured import condensed, paper_table, paper_tables
from tstar.report.tables.own import conditions_table, methods_table

NASTY = "<script>alert(1)</script> & a|b_c $x$ 5% [bold]*y*"


def cells(table):
    return {
        (block.heading, row[0].text, column): cell
        for block in table.blocks
        for row in block.rows
        for column, cell in zip(table.columns, row, strict=True)
    }


def test_marks_are_best_and_second_as_printed_with_ties():
    assert ranked([1.0, 3.0, 2.0]) == ["", "best", "second"]
    assert ranked([3.001, 3.002, 1.0]) == ["best", "best", "second"]
    assert ranked([None, 1.0, float("nan")]) == ["", "best", ""]
    assert ranked([]) == []


def test_the_paper_s_layout_holds_the_runs_means(store):
    table = paper_table("datasets", load(store))
    found = cells(table)
    frame = load(store).frame
    one = frame[
        (frame["dataset"] == "hard") & (frame["norm"] == "none") & (frame["temperature"] == 1)
    ]
    want = 100 * statistics.mean(one["test_accuracy"])
    assert found["resnet10 init", "T = 1", "hard"].value == pytest.approx(want)
    insert = frame[(frame["dataset"] == "hard") & (frame["method"] == "insert-ln")]
    assert found["resnet10 init", "Insert LN", "hard"].value == pytest.approx(
        100 * statistics.mean(insert["test_accuracy"])
    )
    assert found["resnet10 init", "Ours (T*)", "hard"].text.startswith("~")
    for column in table.columns[1:]:
        block = [cell for (_, _, name), cell in found.items() if name == column]
        best = max(round(cell.value, 2) for cell in block)
        assert [cell.mark == "best" for cell in block] == [
            round(cell.value, 2) == best for cell in block
        ]
    heads = {head[0]: dict(zip(table.columns, head, strict=True)) for head in table.heads}
    assert heads["csg"]["hard"] == "25.50"
    assert heads["classes"]["hard"] == "100"


@pytest.mark.parametrize("name", ["datasets", "models"])
def test_averaging_seeds_first_changes_no_table(store, name):
    from tstar.paper.own_runs import yours

    records = load(store)
    whole = yours(name, records.frame, metric="test")
    short = yours(name, condensed(records), metric="test")
    pandas.testing.assert_frame_equal(whole, short)
    assert len(condensed(records)) < len(records.frame) / 2


def test_tables_that_the_runs_do_not_fill_say_why(store):
    found, missing = paper_tables(load(store), fits=False)
    assert {"datasets", "models"} <= {table.name for table in found}
    assert any("label smoothing" in reason for reason in missing)


@pytest.mark.slow
def test_fitted_tables_come_from_the_runs(store):
    found, _ = paper_tables(load(store))
    by_name = {table.name: table for table in found}
    assert {"environments", "corrections", "coefficients"} <= set(by_name)
    assert [row[1].text for row in by_name["environments"].blocks[0].rows][-2:] == ["Avg.", "S.D."]


def test_every_condition_is_a_row(store):
    records = load(store)
    table = conditions_table(records)
    rows = table.blocks[0].rows
    assert len(rows) == len(records.sweeps)
    for row, sweep in zip(rows, records.sweeps, strict=True):
        value = dict(zip(table.columns, row, strict=True))
        assert value["best T"].value == sweep.temperatures[sweep.best]
        assert value["at T = 1"].value == pytest.approx(100 * sweep.mean(0))
        assert (value["regret"].value is None) == (sweep.facts["norm"] == "none")


def test_methods_are_ranked_within_their_block_and_failures_are_not(make_store):
    def change(rows):
        for spec, result in rows:
            result["test_accuracy"] = {"default": 0.7, "kd": 0.9, "insert-ln": 0.8}[spec.method]
        return rows

    store = make_store(
        tasks=(("a", 2.0, 10),),
        grid=(),
        widths=(64,),
        seeds=2,
        methods=("default", "kd", "insert-ln"),
        change=change,
        diverged=(4,),
    )
    found = cells(methods_table(load(store)))
    heading = "a · resnet10 · M = 64"
    assert found[heading, "kd", "accuracy [%]"].mark == "best"
    assert found[heading, "default", "accuracy [%]"].mark == "second"
    # One of its two runs diverged, and counts as chance: (80 + 10)/2.
    assert found[heading, "insert-ln", "accuracy [%]"].value == pytest.approx(45)


def test_no_methods_no_table(make_store):
    store = make_store(tasks=(("a", 2.0, 10),), widths=(64,), seeds=1, norms=("batch",))
    with pytest.raises(TstarError, match="No method"):
        methods_table(load(store))


@pytest.fixture
def nasty():
    row = (Cell(NASTY, NASTY), Cell("1.00", 1.0, "best"), Cell("0.50", 0.5, "second"))
    return Table("t", NASTY, ("name", NASTY, "b"), (Block((row,), NASTY),), NASTY)


def test_html_escapes_names_and_marks(nasty):
    text = to_html(nasty)
    assert "<script" not in text
    assert "<b>1.00</b>" in text
    assert "<u>0.50</u>" in text
    assert 'data-value="0.5"' in text


def test_markdown_escapes_names_and_keeps_its_columns(nasty):
    text = to_markdown(nasty)
    assert "<script" not in text
    assert "**1.00**" in text
    assert "<u>0.50</u>" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in lines} == {4}
    assert r"\*y\*" in text


def test_latex_escapes_names_and_marks(nasty):
    text = to_latex(nasty)
    assert r"\textbf{1.00}" in text
    assert r"\underline{0.50}" in text
    assert r"\textless{}script\textgreater{}" in text
    assert r"b\_c \$x\$ 5\%" in text
    assert text.count(r"\begin") == text.count(r"\end")
    assert latex("Ours (T*_csgcn)") == r"Ours ($\hat{T}^{*}_{csgcn}$)"
    assert latex("\\") == r"\textbackslash{}"


def test_csv_holds_full_numbers(nasty):
    rows = list(csv.reader(io.StringIO(to_csv(nasty))))
    assert rows[1] == [NASTY, NASTY, "1.0", "0.5"]


def test_the_terminal_shows_names_as_they_are(nasty):
    console = Console(width=300, record=True, file=io.StringIO())
    console.print(to_rich(nasty))
    assert NASTY in console.export_text()
