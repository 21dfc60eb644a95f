"""The figure of a check."""

from types import SimpleNamespace

import pytest

from tstar.checking.figure import draw
from tstar.checking.trial import Row
from tstar.errors import TstarError

pytest.importorskip("matplotlib")


def row(temperature, accuracy):
    return Row(temperature, accuracy, accuracy, 0.01, 2, 0)


def check():
    rows = (row(None, 0.5), row(1.0, 0.6), row(4.0, 0.7))
    advice = SimpleNamespace(temperature=3.25)
    return SimpleNamespace(rows=rows, plain=rows[0], advice=advice, steps=40)


def test_the_formula_and_the_plain_model_are_named(tmp_path):
    draw(check(), tmp_path / "check.svg")
    text = (tmp_path / "check.svg").read_text(encoding="utf-8")
    for said in ("formula: T = 3.25", "the model as it is", "40 steps, 2 seeds"):
        assert f"<!-- {said} -->" in text


def test_what_cannot_be_written_is_said(tmp_path):
    for name in ("none/check.svg", "check.nothing"):
        with pytest.raises(TstarError, match="could not be written"):
            draw(check(), tmp_path / name)
