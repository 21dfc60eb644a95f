"""Text on a terminal breaks between words, in a file it stays as it is; progress is a bar or lines."""

import io
import json
import os

from rich.console import Console

from tstar.lab.cli import terminal
from tstar.lab.cli.terminal import progress, tell, tell_json

LONG = "  note: the grid does not bracket the optimum in 25 conditions, extend it there"


def console(terminal, width=40):
    out = io.StringIO()
    return Console(file=out, force_terminal=terminal, width=width, color_system=None)


def told(text, *, terminal, **options):
    out = console(terminal)
    tell(text, console=out, **options)
    return out.file.getvalue()


def test_lines_break_between_words_and_paths_stay_whole():
    lines = told(LONG, terminal=True).splitlines()
    assert len(lines) == 3
    assert all(len(line) <= 40 for line in lines)
    assert " ".join("".join(f"{line} " for line in lines).split()) == LONG.strip()
    path = "/home/somebody/with/a/very/long/name/of/a/folder/report.html"
    assert path in told(f"page: {path}", terminal=True).splitlines()[-1]


def test_a_file_gets_whole_lines():
    assert told(LONG, terminal=False) == f"{LONG}\n"
    assert told("a\n\nb [bold] $x", terminal=False, first="bold") == "a\n\nb [bold] $x\n"


def test_json_is_readable_and_survives_a_file_name_that_is_no_text(capsys):
    tell_json({"α": 1})
    assert '"α": 1' in capsys.readouterr().out
    tell_json({"name": os.fsdecode(b"a\xff")})
    assert json.loads(capsys.readouterr().out) == {"name": "a\udcff"}


def test_what_a_terminal_would_obey_is_shown_escaped(capsys):
    assert told("a\x1b[31mb\u202ec", terminal=False) == "a\\x1b[31mb\\u202ec\n"
    value = {"α \u202e\x1b\x7f\U000e0001": ["\u2066"]}
    tell_json(value)
    text = capsys.readouterr().out
    assert not any(hidden in text for hidden in "\u202e\x1b\x7f\U000e0001\u2066")
    assert json.loads(text) == value


def test_progress_is_a_line_now_and_then_or_a_bar(monkeypatch):
    out = console(terminal=False)
    monkeypatch.setattr(terminal, "ERRORS", out)
    with progress() as update:
        update(1, 15, "figure [1]")
        assert out.file.getvalue() == ""  # nothing from a quick command
        monkeypatch.setattr(terminal, "_EVERY", -1.0)
        update(1, 15, "figure [1]")
    assert out.file.getvalue() == "1/15 · figure [1]\n"  # and no escape codes
    out = console(terminal=True, width=100)
    monkeypatch.setattr(terminal, "ERRORS", out)
    with progress() as update:
        update(3, 4, "T = 2")
    assert "T = 2" in out.file.getvalue()
    assert "3/4" in out.file.getvalue()
