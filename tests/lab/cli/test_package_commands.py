"""Demo, calculator and atlas as a user types them."""

import io
from pathlib import Path

import pandas as pd
import pytest

from tests.lab.test_demo import measured
from tstar.errors import TstarError
from tstar.lab import atlas, demo
from tstar.lab.calculator import page


@pytest.fixture
def asked(monkeypatch):
    """The demo's training is replaced by known numbers."""
    found = []
    monkeypatch.setattr(demo, "run", lambda *options: found.append(options) or measured(20))
    return found


def test_the_demo_shows_the_advice_the_result_and_the_figure(run, asked):
    shown = run("demo", "-o", "demo.png", "--seeds", "2").output
    assert "the advice in words" in shown
    assert "+20.0 points over 3 seeds" in " ".join(shown.split())
    assert Path("demo.png").exists()
    assert asked[0][0] == 2


def test_the_demo_asks_for_a_format_first_and_draws_only_with_matplotlib(run, asked, monkeypatch):
    with pytest.raises(TstarError, match="format of a figure 'gif'"):
        run("demo", "-o", "demo.gif")
    assert asked == []
    monkeypatch.setattr("tstar.lab.cli.package_commands.find_spec", lambda name: None)
    assert run("demo").stdout.endswith("With a figure: pip install 'tstar[lab]'\n")
    assert not Path("tstar-demo.png").exists()


def test_the_calculator_is_written(run):
    assert run("calculator").stdout.strip() == "tstar-calculator.html"
    assert Path("tstar-calculator.html").read_text(encoding="utf-8") == page()


def test_the_atlas_is_chosen_from_and_printed(run):
    condition = "atlas == 2 and optimizer == 'adamw' and steps > 1000"
    told = pd.read_csv(io.StringIO(run("atlas", "--where", condition, "--csv").stdout))
    runs = atlas().query("atlas == 2")
    wanted = runs[(runs.optimizer == "adamw") & (runs.steps > 1000)]
    assert len(wanted) > 10
    assert list(told.key) == list(wanted.key)
    assert list(told.columns) == list(runs.columns)
    out = run("atlas").stdout
    assert f"{len(atlas()):,} runs" in out
    assert len(out.splitlines()) < 30
    with pytest.raises(TstarError, match="name 'nope' is not defined"):
        run("atlas", "--where", "nope > 1")
