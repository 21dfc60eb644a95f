"""``tstar demo`` as a user types it, with its training replaced by known numbers."""

import json
from pathlib import Path

import pytest

from tstar import demo
from tstar.demo import Demo, Point
from tstar.errors import TstarError

pytest.importorskip("matplotlib")


@pytest.fixture
def measured(monkeypatch):
    cells = ((1.0, None, 60.0), (1.0, "batch", 55.0), (4.4, "batch", 70.25), (8.0, "batch", 71.0))
    points = {(M, T, norm): Point(mean, 1.0, 3) for M in (32, 96) for T, norm, mean in cells}
    result = Demo(points, {32: 4.4, 96: 4.4}, notices=("a short training",))
    asked = []
    monkeypatch.setattr(demo, "run", lambda **options: asked.append(options) or result)
    return asked


def test_the_table_has_every_column_and_the_figure_its_place(run, measured):
    shown = run("demo", "-o", "demo.png", "--seeds", "2").output
    for said in ("60.0 ± 1.0", "55.0 ± 1.0", "T = 4.4: 70.2 ± 1.0", "T = 8: 71.0 ± 1.0"):
        assert said in shown
    assert "a short training" in shown
    assert Path("demo.png").exists()
    assert measured[0]["seeds"] == 2


def test_json_is_all_there_is_on_stdout(run, measured):
    facts = json.loads(run("demo", "--json").stdout)
    assert facts["recommended"] == {"32": 4.4, "96": 4.4}
    assert len(facts["points"]) == 8


def test_a_wrong_format_is_said_before_the_training(run, measured):
    with pytest.raises(TstarError, match="format of a figure 'gif'"):
        run("demo", "-o", "demo.gif")
    assert measured == []
