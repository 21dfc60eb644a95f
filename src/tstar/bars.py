"""A progress bar for what takes more than a moment, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, Protocol

from tstar.lazy import imported

_MOMENT = 1.0  # seconds before anything is shown
_QUIET = ContextVar("quiet", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    """No bars for a while: a caller shows its own, and two on one terminal would garble each other."""
    before = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(before)


class Tick(Protocol):
    def __call__(self, done: int, /) -> object: ...


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Tick]:
    """A function to call with how much was done; shows a bar on stderr after a second."""
    if _QUIET.get() or not sys.stderr.isatty():
        yield lambda done: None
        return
    console: Any = imported("rich.console").Console(stderr=True)
    bar: Any = imported("rich.progress").Progress(console=console, transient=True)
    task = bar.add_task(what, total=total)
    begun = monotonic()

    def tick(done: int) -> None:
        bar.advance(task, done)
        if not bar.live.is_started and monotonic() - begun > _MOMENT:
            bar.start()

    try:
        yield tick
    finally:
        bar.stop()
