"""The bar of what takes more than a moment."""

import io
import sys

from tstar.difficulty import progress as module
from tstar.difficulty.progress import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def watched(monkeypatch, stream, moment):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(module, "_MOMENT", moment)
    with progress("neighbors", 10) as tick:
        for _ in range(10):
            tick(1)
    return stream.getvalue()


def test_a_bar_is_shown_on_a_terminal_after_a_moment_only(monkeypatch):
    assert watched(monkeypatch, io.StringIO(), -1.0) == ""
    assert watched(monkeypatch, Terminal(), 1e6) == ""
    assert "neighbors" in watched(monkeypatch, Terminal(), -1.0)
