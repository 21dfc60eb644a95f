"""The page of methods names every method, with what it needs and what it costs."""

import re
from pathlib import Path

import pytest

from tstar.lab import methods

PAGE = Path(__file__).resolve().parents[2] / "docs" / "methods.md"


def listed():
    text = PAGE.read_text(encoding="utf-8")
    text = text[text.index("| name |") : text.index("A training's `label_smoothing`")]
    rows = re.findall(r"^\| `([\w-]+)` \|[^|]*\|([^|]*)\| (\d+) \|$", text, re.MULTILINE)
    return {name: (needs, int(runs)) for name, needs, runs in rows}


def test_the_table_has_every_method_in_order():
    assert [*listed()] == methods.list()


@pytest.mark.parametrize("name", methods.list())
def test_needs_and_cost_are_the_methods_own(name):
    needs, runs = listed()[name]
    method = methods.get(name, **({"temperature": 4.0} if name == "fixed" else {}))
    assert {word.strip() for word in needs.split(",") if word.strip()} == set(method.needs)
    assert runs == (len(method.candidates) or 1) + ("teacher" in method.needs)


def test_what_is_left_out_is_named():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    for name in ("adaptive temperature scaling", "dynamic label smoothing", "contrastive losses"):
        assert name in text
