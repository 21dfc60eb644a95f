"""Text on a terminal breaks between words; in a file it stays as it is."""

import io

from rich.console import Console

from tstar.cli.printing import tell

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
