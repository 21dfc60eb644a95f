"""What a command prints: text, tables, JSON, and the progress of long work."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

from tstar.lab.cells import plain
from tstar.text import printable

ERRORS = Console(stderr=True)  # what is no result: progress, notices
_EVERY = 30.0  # seconds between the lines of progress in a file


def tell_json(value: object) -> None:
    """Print JSON. What a terminal would obey, or UTF-8 cannot hold, is escaped."""
    content = plain(value)
    text = json.dumps(content, indent=2, ensure_ascii=False)
    if printable(text, lines=True) != text:
        text = json.dumps(content, indent=2)
    typer.echo(text)


def answer(found: Any, as_json: bool) -> None:
    """Print a record: its JSON, or the text that it is."""
    if as_json:
        tell_json(found.to_dict())
    elif hasattr(found, "__rich__"):
        Console().print(found, highlight=False, soft_wrap=True)
    else:
        tell(found)


def tell(text: object, style: str = "", *, first: str = "", console: Console | None = None) -> None:
    """Print text as it is. On a terminal long lines break between words; paths stay whole.

    ``first`` is a style of the first word.
    """
    out = console or Console()
    lines = printable(text, lines=True).split("\n")
    if out.is_terminal:
        words = textwrap.TextWrapper(out.width, break_long_words=False, break_on_hyphens=False)
        lines = ["\n".join(words.wrap(line)) for line in lines]
    shown = Text("\n".join(lines), style)
    if first:
        shown.stylize(first, 0, len(lines[0].partition(" ")[0]))
    out.print(shown, soft_wrap=True)


def show(rows: Sequence[Mapping[str, object]]) -> None:
    """Print rows as a table: as wide as the terminal, and in a file as wide as it needs to be.

    Thousands have commas; true and false are words.
    """
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 400
    table = Table(*(rows[0] if rows else ()), box=None, pad_edge=False)
    for row in rows:
        words = ({True: "yes", False: "no"}[v] if isinstance(v, bool) else v for v in row.values())
        table.add_row(*(Text(f"{v:,}" if isinstance(v, int) else printable(v)) for v in words))
    console.print(table)


def counted(number: int, what: str) -> str:
    """A number of things, in words.

    >>> counted(1, "run"), counted(2, "run")
    ('1 run', '2 runs')
    """
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def duration(seconds: float | None) -> str:
    """Seconds as a person says them.

    >>> duration(75), duration(7500), duration(None)
    ('1 min 15 s', '2 h 05 min', '?')
    """
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 48 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole / 86400:.1f} days"


@contextmanager
def progress(first: str = "") -> Iterator[Callable[[int, int, str], None]]:
    """A function of what is done, the total and what is next: a bar, or a line now and then."""
    columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    terminal, said = ERRORS.is_terminal, time.monotonic()
    with Progress(*columns, console=ERRORS, disable=not terminal, transient=True) as bar:
        task = bar.add_task(first, total=None)

        def update(done: int, total: int, what: str) -> None:
            nonlocal said
            bar.update(task, completed=done, total=total, description=escape(what))
            if not terminal and time.monotonic() - said > _EVERY:
                said = time.monotonic()
                tell(f"{done}/{total} · {what}", console=ERRORS)

        yield update
