"""Progress of long commands: a live bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from tstar.bars import quiet

if TYPE_CHECKING:
    from tstar.sweep.run import Tally

_EVERY = 30.0  # seconds between the lines where there is no terminal


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
def progress(console: Console, first: str = "") -> Iterator[Callable[[int, int, str], None]]:
    """Called with what is done, of how many, and what is next: a bar, or a line every half a minute."""
    columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    terminal, said = console.is_terminal, time.monotonic()
    with quiet(), Progress(*columns, console=console, disable=not terminal, transient=True) as bar:
        task = bar.add_task(first, total=None)

        def update(done: int, total: int, what: str) -> None:
            nonlocal said
            bar.update(task, completed=done, total=total, description=escape(what))
            if not terminal and time.monotonic() - said > _EVERY:
                said = time.monotonic()
                console.print(f"{done}/{total} · {what}", highlight=False, markup=False)

        yield update


def state_of(tally: Tally) -> str:
    """Runs per hour, time left, failures of a sweep under way."""
    text = f"{tally.per_hour:,.0f} runs/h · {duration(tally.seconds_left)} left"
    text += f" · {tally.diverged} diverged" if tally.diverged else ""
    return text + (f" · {tally.failed} failed" if tally.failed else "")
