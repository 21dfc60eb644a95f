"""Text on a terminal and in a file."""

from __future__ import annotations

import json
import re
import textwrap

import typer
from rich.console import Console
from rich.text import Text

from tstar.text import printable


def tell_json(value: object) -> None:
    """Print JSON in UTF-8; what UTF-8 cannot hold, of a file's name say, or cannot be seen, is escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # A character that a terminal would obey stands in a string, where JSON has an escape for it.
    typer.echo(re.sub(r"[^ -~\n]", lambda m: _visible(m[0]), text))


def _visible(character: str) -> str:
    return character if printable(character) == character else json.dumps(character)[1:-1]


def wide_console() -> Console:
    """The terminal's own width; wide enough for any table where the output goes to a file."""
    console = Console()
    return console if console.is_terminal else Console(width=400)


def tell(text: object, style: str = "", *, first: str = "", console: Console | None = None) -> None:
    """Print text as it is; on a terminal long lines break between words and go on below their own start.

    A word that is longer than the line, such as a path, stays whole. ``first``: a style of the first word.
    """
    out = console or Console()
    for line in printable(text, lines=True).split("\n"):
        parts = [line]
        if out.is_terminal and len(line) > out.width:
            start = line[: len(line) - len(line.lstrip())]
            parts = textwrap.wrap(
                line,
                out.width,
                subsequent_indent=f"{start}  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        for part in parts:
            shown = Text(part, style)
            if first:
                shown.stylize(first, 0, len(part.partition(" ")[0]))
                first = ""
            out.print(shown, soft_wrap=True)
