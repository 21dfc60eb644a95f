"""Progress of long commands: a live bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
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


class SweepProgress:
    """Runs done of all, runs an hour, time left, failures."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said = time.monotonic()
        self._bar: Progress | None = None
        if console.is_terminal:
            self._bar = Progress(
                SpinnerColumn(),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.description}"),
                console=console,
            )
            self._task = self._bar.add_task("reading data …", total=None)

    def update(self, tally: Tally) -> None:
        text = f"{tally.per_hour:,.0f} runs/h · {duration(tally.seconds_left)} left"
        if tally.diverged:
            text += f" · {tally.diverged} diverged"
        if tally.failed:
            text += f" · [red]{tally.failed} failed[/]"
        if self._bar is not None:
            self._bar.update(
                self._task, completed=tally.finished, total=tally.total, description=text
            )
        elif time.monotonic() - self._said > _EVERY:
            self._said = time.monotonic()
            self._console.print(f"{tally.finished}/{tally.total} · {text}", highlight=False)

    def __enter__(self) -> SweepProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


@contextmanager
def check_progress(console: Console) -> Iterator[Callable[[int, int, str], None]]:
    """A bar for ``tstar check``: called with what is done, of how many, and what is next."""
    with (
        quiet(),
        Progress(
            SpinnerColumn(),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        ) as bar,
    ):
        task = bar.add_task("", total=None)

        def update(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield update
