"""Text as it is shown: nothing in it is obeyed."""

import pytest

from tstar import text
from tstar.text import ShownAsText, escaped, printable, tracked


@pytest.mark.parametrize(
    "hidden", ["\x1b", "\x07", "\u202e", "\u2066", "\u200b", "\n", "\x9b", "\u2028"]
)
def test_what_a_terminal_would_obey_is_escaped(hidden):
    shown = printable(f"a{hidden}b")
    assert hidden not in shown
    assert shown.startswith("a\\")
    assert shown.endswith("b")


def test_other_text_stays_as_it_is():
    text = "ε = 1, 温度, حرارة, é"
    assert printable(text) == text
    assert printable("a\n\tb\x1b", lines=True) == "a\n\tb\\x1b"


def test_text_of_a_page_is_neither_markup_nor_obeyed():
    assert escaped("a<b>\u202e\x1b\n") == "a&lt;b&gt;\\u202e\\x1b\n"
    assert escaped('"', quote=False) == '"'


def test_a_terminal_and_a_page_show_the_same_lines():
    class Two(ShownAsText):
        def __str__(self):
            return "first <b>\nsecond"

    assert Two().__rich__().plain == "first <b>\nsecond"
    assert Two()._repr_html_() == "<pre>first &lt;b&gt;\nsecond</pre>"


@pytest.mark.parametrize("terminal", [True, False])
def test_long_work_is_counted_on_a_terminal_alone(monkeypatch, capsys, terminal):
    monkeypatch.setattr(text.sys.stderr, "isatty", lambda: terminal, raising=False)
    seconds = iter(range(100))
    monkeypatch.setattr(text.time, "monotonic", lambda: next(seconds))
    assert list(tracked("abcdef", "letters", 6)) == [*"abcdef"]
    line = capsys.readouterr().err
    assert ("letters: 5 of 6" in line) is terminal
    assert line.endswith("\r\x1b[K") is terminal
