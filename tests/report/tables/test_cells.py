"""Marks of a table."""

from tstar.report.tables.cells import (
    Block,
    Cell,
    Table,
    filled,
    number_cell,
    ranked,
    spread_cell,
)


def test_marks_are_best_and_second_as_printed_with_ties():
    assert ranked([1.0, 3.0, 2.0]) == ["", "best", "second"]
    assert ranked([3.001, 3.002, 1.0]) == ["best", "best", "second"]
    assert ranked([None, 1.0, float("nan")]) == ["", "best", ""]
    assert ranked([]) == []


def test_a_spread_is_never_a_flat_zero():
    assert spread_cell([80.0, 82.0]).text == "1.41"
    assert spread_cell([80.0, 80.001]).text == "< 0.01"
    assert spread_cell([80.0, 80.001]).value > 0
    assert spread_cell([80.0]).text == "–"


def test_what_rounds_to_zero_has_no_sign():
    assert [number_cell(x).text for x in (-0.004, 0.004, -0.006)] == ["0.00", "0.00", "-0.01"]


def test_columns_that_no_row_fills_go():
    rows = ((Cell("a"), Cell("–"), Cell("1", 1.0)), (Cell("b"), Cell(""), Cell("–")))
    table = Table("t", "T", ("", "x", "y"), (Block(rows, "h"),), heads=(("K", "7", "9"),))
    kept = filled(table)
    assert kept.columns == ("", "y")
    assert [[cell.text for cell in row] for row in kept.blocks[0].rows] == [["a", "1"], ["b", "–"]]
    assert (kept.blocks[0].heading, kept.heads) == ("h", (("K", "9"),))
