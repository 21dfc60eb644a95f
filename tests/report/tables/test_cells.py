"""Marks of a table."""

from tstar.report.tables.cells import ranked, spread_cell


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
