"""``tstar calculator`` as a user types it."""

import webbrowser
from pathlib import Path

from tstar.calculator import page


def test_the_page_is_written_and_opened_on_request_only(run, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    assert run("calculator").stdout.strip() == "tstar-calculator.html"
    assert Path("tstar-calculator.html").read_text(encoding="utf-8") == page()
    assert opened == []
    run("calculator", "-o", "mine.html", "--open")
    assert opened == [Path("mine.html").resolve().as_uri()]


def test_where_no_browser_starts_it_says_so(run, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    assert "open the file yourself" in run("calculator", "--open").stderr
