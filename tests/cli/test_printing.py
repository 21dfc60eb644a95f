"""Text on a terminal breaks between words; in a file it stays as it is."""

import io
import json
import os

from rich.console import Console

from tstar.cli.printing import tell, tell_json

LONG = "  note: the grid does not bracket the optimum in 25 conditions, extend it there"


def told(text, *, terminal, width=40, **options):
    out = io.StringIO()
    tell(
        text,
        console=Console(file=out, force_terminal=terminal, width=width, color_system=None),
        **options,
    )
    return out.getvalue()


def test_lines_break_between_words_below_their_start():
    lines = told(LONG, terminal=True).splitlines()
    assert len(lines) == 3
    assert all(len(line) <= 40 for line in lines)
    assert all(line.startswith("    ") for line in lines[1:])
    assert " ".join("".join(f"{line} " for line in lines).split()) == LONG.strip()


def test_a_file_gets_whole_lines():
    assert told(LONG, terminal=False) == f"{LONG}\n"
    assert told("a\n\nb [bold] $x", terminal=False, first="bold") == "a\n\nb [bold] $x\n"


def test_a_path_stays_whole():
    path = "/home/somebody/with/a/very/long/name/of/a/folder/report.html"
    assert path in told(f"page: {path}", terminal=True).splitlines()[-1]


def test_json_is_readable_and_survives_a_file_name_that_is_no_text(capsys):
    tell_json({"α": 1, "name": os.fsdecode(b"a\xff")})
    out = capsys.readouterr().out
    assert '"α": 1' in out
    assert json.loads(out) == {"α": 1, "name": "a\udcff"}


def test_what_a_terminal_would_obey_is_shown_escaped(capsys):
    assert told("a\x1b[31mb\u202ec", terminal=False) == "a\\x1b[31mb\\u202ec\n"
    value = {"α \u202e\x1b\x7f\U000e0001": ["\u2066"]}
    tell_json(value)
    text = capsys.readouterr().out
    assert "α" in text
    assert not any(hidden in text for hidden in "\u202e\x1b\x7f\U000e0001\u2066")
    assert json.loads(text) == value
