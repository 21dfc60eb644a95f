"""Tables in every format: a name is text in each."""

import csv
import io

import pytest
from rich.console import Console

from tstar.report.tables.cells import Block, Cell, Table
from tstar.report.tables.markup import latex, to_csv, to_html, to_latex, to_markdown, to_rich

NASTY = "<script>alert(1)</script> & a|b_c $x$ 5% [bold]*y*"


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


def test_what_a_browser_would_obey_is_shown_escaped():
    name = "a\u202e\x1b[31mb"
    table = Table(
        "t", name, ("name", name), (Block(((Cell(name, name), Cell(name, name)),), name),), name
    )
    text = to_html(table)
    assert "\\u202e" in text
    assert "\u202e" not in text
    assert "\x1b" not in text
