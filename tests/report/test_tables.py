"""Tables: their marks, their numbers, and that a name is text in every format."""

import csv
import io
import statistics

import pytest
from rich.console import Console

from tstar import TstarError
from tstar.report.records import load
from tstar.report.tables.cells import Block, Cell, Table, ranked
from tstar.report.tables.markup import latex, to_csv, to_html, to_latex, to_markdown, to_rich
from tstar.report.tables.measured import paper_table, paper_tables, split
from tstar.report.tables.own import advice_table, conditions_table, methods_table

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
    block = table.blocks[0].heading
    assert block.startswith("resnet10, from scratch · 1,000 samples, 6 epochs")
    one = frame[
        (frame["dataset"] == "hard") & (frame["norm"] == "none") & (frame["temperature"] == 1)
    ]
    want = 100 * statistics.mean(one["test_accuracy"])
    assert found[block, "plain", "hard"].value == pytest.approx(want)
    insert = frame[(frame["dataset"] == "hard") & (frame["method"] == "insert-ln")]
    assert found[block, "Insert LN", "hard"].value == pytest.approx(
        100 * statistics.mean(insert["test_accuracy"])
    )
    assert found[block, "n", "hard"].text == "2 (6)"  # two widths, three seeds
    for column in table.columns[1:]:
        here = [
            c for (_, row, name), c in found.items() if name == column and row != "n" and c.value
        ]
        best = max(round(cell.value, 2) for cell in here)
        assert [cell.mark == "best" for cell in here] == [
            round(cell.value, 2) == best for cell in here
        ]
    heads = {head[0]: dict(zip(table.columns, head, strict=True)) for head in table.heads}
    assert heads["csg"]["hard"] == "25.50"
    assert heads["classes"]["hard"] == "100"


def test_a_table_that_is_mostly_dashes_is_split():
    def row(name, *values):
        return (Cell(name), *(Cell("–") if v is None else Cell(str(v), v) for v in values))

    blocks = tuple(
        Block((row("plain", *(1.0 if i == j else None for j in range(3))),), f"block {i}")
        for i in range(3)
    )
    table = Table("t", "T", ("method", "a", "b", "c"), blocks)
    parts = split(table)
    assert [part.columns for part in parts] == [("method", "a"), ("method", "b"), ("method", "c")]
    assert [part.title for part in parts] == ["T: block 0", "T: block 1", "T: block 2"]
    assert split(parts[0]) == [parts[0]]


def test_the_advice_is_compared_on_the_same_conditions_and_seeds(make_store):
    """Plain was run in one of three tasks: every row is over that one."""

    def change(rows):
        return [row for row in rows if row[0].norm == "batch" or row[0].dataset == "easy"]

    records = load(make_store(widths=(64,), change=change))
    table = advice_table(records)
    rows = {row[0].text: row for row in table.blocks[0].rows}
    assert "the same 1 conditions (of 3 with BN, those that ran plain too)" in table.note
    sweep = next(s for s in records.with_norm("batch") if s.facts["dataset"] == "easy")
    assert rows["plain"][1].value == pytest.approx(100 * sweep.condition.plain())
    assert rows["BN, advised T"][1].value == pytest.approx(100 * sweep.at(sweep.recommended))
    assert rows["BN, T = 1"][1].value == pytest.approx(100 * sweep.mean(0))
    gain = rows["BN, advised T"][1].value - rows["plain"][1].value
    assert rows["BN, advised T"][2].value == pytest.approx(gain)
    assert len([name for name in rows if "Hasegawa & Sakai" in name]) == 4


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


def test_methods_with_other_seeds_are_not_ranked_and_conditions_not_mixed(make_store):
    def change(rows):
        kept = []
        for spec, result in rows:
            result["test_accuracy"] = {"default": 0.7, "kd": 0.8, "insert-ln": 0.99}[spec.method]
            if spec.method != "insert-ln" or spec.seed == 0:
                kept.append((spec, result))
        return kept

    store = make_store(
        tasks=(("a", 2.0, 10),),
        grid=(),
        widths=(64,),
        seeds=2,
        methods=("default", "kd", "insert-ln"),
        change=change,
        lr=(0.1, 0.01),
    )
    table = methods_table(load(store))
    assert [block.heading for block in table.blocks] == [
        "a · resnet10 · M = 64 · lr 0.01",
        "a · resnet10 · M = 64 · lr 0.1",
    ]
    for block in table.blocks:
        marks = {row[0].text: row[1].mark for row in block.rows}
        assert marks == {"default": "second", "kd": "best", "insert-ln": ""}


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
    assert latex("BN, Hasegawa & Sakai T*_cn") == r"BN, Hasegawa \& Sakai $\hat{T}^{*}_{cn}$"
    assert latex("\\") == r"\textbackslash{}"


def test_csv_holds_full_numbers(nasty):
    rows = list(csv.reader(io.StringIO(to_csv(nasty))))
    assert rows[1] == [NASTY, NASTY, "1.0", "0.5"]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_a_spreadsheet_takes_no_cell_for_a_formula(name):
    table = Table("t", "T", ("a", "b"), (Block(((Cell(name, name), Cell("-1", -1.0)),), name),))
    block, first, number = list(csv.reader(io.StringIO(to_csv(table))))[1]
    assert block == first == f"'{name}"
    assert number == "-1.0"  # a number is one


def test_the_terminal_shows_names_as_they_are(nasty):
    console = Console(width=300, record=True, file=io.StringIO())
    console.print(to_rich(nasty))
    assert NASTY in console.export_text()
