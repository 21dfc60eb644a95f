"""The bar of what takes more than a moment, and never two at once."""

import io
import sys
from contextlib import nullcontext

from tstar import bars


class Terminal(io.StringIO):
    def isatty(self):
        return True


def watched(monkeypatch, stream, moment, around=None):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(bars, "_MOMENT", moment)
    with around or nullcontext(), bars.progress("neighbors", 10) as tick:
        for _ in range(10):
            tick(1)
    return stream.getvalue()


def test_a_bar_is_shown_on_a_terminal_after_a_moment_only(monkeypatch):
    assert watched(monkeypatch, io.StringIO(), -1.0) == ""
    assert watched(monkeypatch, Terminal(), 1e6) == ""
    assert "neighbors" in watched(monkeypatch, Terminal(), -1.0)


def test_no_bar_runs_into_one_of_the_caller(monkeypatch):
    assert watched(monkeypatch, Terminal(), -1.0, bars.quiet()) == ""
    assert "neighbors" in watched(monkeypatch, Terminal(), -1.0)  # it ends with its block
