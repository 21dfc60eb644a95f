"""The figure of a check."""

import pytest

from tstar.checking.figure import Line, draw
from tstar.errors import TstarError

pytest.importorskip("matplotlib")


LINE = Line("", [(1.0, 60.0, 1.0), (4.0, 70.0, 1.0)], 50.0, 3.25)


def test_the_formula_and_the_plain_model_are_named(tmp_path):
    draw([LINE], tmp_path / "check.svg", "40 steps, 2 seeds")
    text = (tmp_path / "check.svg").read_text(encoding="utf-8")
    for said in ("formula: T = 3.25", "plain", "BN, T", "40 steps, 2 seeds"):
        assert f"<!-- {said} -->" in text


def test_what_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").touch()
    for name, said in (("file/a.svg", "could not be written"), ("a.nothing", "format of a figure")):
        with pytest.raises(TstarError, match=said):
            draw([LINE], tmp_path / name, "")


def test_several_lines_are_told_apart(tmp_path):
    draw([LINE._replace(name="M = 32"), LINE._replace(name="M = 96")], tmp_path / "two.svg", "")
    text = (tmp_path / "two.svg").read_text(encoding="utf-8")
    assert "<!-- M = 32: formula: T = 3.25 -->" in text
    assert "<!-- M = 96: plain -->" in text
