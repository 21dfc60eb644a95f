"""Progress of long commands: a bar on a terminal, a line now and then elsewhere."""

import io

import pytest
from rich.console import Console

from tstar.cli import progress
from tstar.sweep.run import Tally


def console(terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=100)


def tally() -> Tally:
    return Tally(total=8, before=1, done=2, diverged=1, failed=1)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(59.4, "59 s"), (60, "1 min 00 s"), (3600, "1 h 00 min"), (60 * 3600, "2.5 days")],
)
def test_times_as_people_say_them(seconds, said):
    assert progress.duration(seconds) == said


def test_without_a_terminal_a_line_now_and_then(monkeypatch):
    out = console(terminal=False)
    with progress.progress(out) as update:
        update(1, 15, "figure [1]")
        assert out.file.getvalue() == ""  # nothing from a quick command
        monkeypatch.setattr(progress, "_EVERY", -1.0)
        update(1, 15, "figure [1]")
    assert out.file.getvalue().rstrip("\n") == "1/15 · figure [1]"  # and no escape codes


def test_a_sweep_says_what_went_wrong():
    assert progress.state_of(tally()).endswith(" left · 1 diverged · 1 failed")
    assert progress.state_of(Tally(total=8, done=2)).endswith(" left")


def test_on_a_terminal_a_bar():
    out = console(terminal=True)
    with progress.progress(out) as update:
        update(3, 4, "T = 2")
    assert "T = 2" in out.file.getvalue()
    assert "3/4" in out.file.getvalue()
