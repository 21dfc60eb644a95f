"""Names from files and users are shown, never obeyed."""

import re

import pytest

from tstar.text import DISARMED, disarmed, escaped, printable


@pytest.mark.parametrize(
    "hidden", ["\x1b", "\x07", "\u202e", "\u2066", "\u200b", "\n", "\x9b", "\u2028"]
)
def test_what_a_terminal_would_obey_is_escaped(hidden):
    shown = printable(f"a{hidden}b")
    assert hidden not in shown
    assert shown.startswith("a\\")
    assert shown.endswith("b")


def test_letters_of_every_script_stay_as_they_are():
    text = "ε = 1, 温度, حرارة, é"
    assert printable(text) == text


def test_texts_of_several_lines_keep_them():
    assert printable("a\n\tb\x1b", lines=True) == "a\n\tb\\x1b"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "'="])
def test_no_cell_is_a_formula_and_reading_gives_the_text_back(start):
    text = f"{start}cmd()"
    assert disarmed(text) == f"'{text}"
    assert re.sub(DISARMED, "", disarmed(text)) == text
    assert disarmed("cmd = 1") == "cmd = 1"
    assert disarmed(-1.5) == -1.5


def test_text_of_a_page_is_neither_markup_nor_obeyed():
    assert escaped("a<b>\u202e\x1b\n") == "a&lt;b&gt;\\u202e\\x1b\n"
    assert escaped('"', quote=False) == '"'
