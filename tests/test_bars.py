"""Bars: after a moment, on a terminal, and never two at once."""

import sys
from contextlib import nullcontext

from tstar import bars


class Screen:
    """A standard error that is a terminal, and keeps what is written."""

    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text
        return len(text)

    def flush(self):
        pass


def shown(monkeypatch, *, quiet):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(bars, "_MOMENT", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    with bars.quiet() if quiet else nullcontext(), bars.progress("neighbors", 4) as tick:
        tick(2)
    return screen.text


def test_a_bar_is_shown_unless_the_caller_has_one(monkeypatch):
    assert "neighbors" in shown(monkeypatch, quiet=False)
    assert shown(monkeypatch, quiet=True) == ""
    assert "neighbors" in shown(monkeypatch, quiet=False)  # it ends with its block
