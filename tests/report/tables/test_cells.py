"""Marks of a table."""

from tstar.report.tables.cells import ranked


def test_marks_are_best_and_second_as_printed_with_ties():
    assert ranked([1.0, 3.0, 2.0]) == ["", "best", "second"]
    assert ranked([3.001, 3.002, 1.0]) == ["best", "best", "second"]
    assert ranked([None, 1.0, float("nan")]) == ["", "best", ""]
    assert ranked([]) == []
