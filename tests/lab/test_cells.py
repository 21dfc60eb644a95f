"""Cells that a spreadsheet would take for formulas."""

import re

import pytest

from tstar.lab.cells import DISARMED, disarmed


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\n", "'="])
def test_no_cell_is_a_formula_and_reading_gives_the_text_back(start):
    text = f"{start}cmd()"
    assert disarmed(text) == f"'{text}"
    assert re.sub(DISARMED, "", disarmed(text)) == text
    assert disarmed("cmd = 1") == "cmd = 1"
    assert disarmed(-1.5) == -1.5
