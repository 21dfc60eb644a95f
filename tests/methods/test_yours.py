"""Methods of your own."""

import pytest
from torch import nn

from tests.methods.networks import facts
from tstar import TstarError, methods

SOURCE = """
from dataclasses import dataclass
from tstar.methods import Recipe

def doubled(model, facts, factor=2.0):
    return Recipe(model, lambda z, y, x: factor * z.sum())

def nothing(model, facts):
    return model

@dataclass
class Whole:
    name = "whole"
    needs = frozenset()
    def prepare(self, model, facts):
        return doubled(model, facts, 3.0)

class Half:
    name = "half"
"""


@pytest.fixture
def part(tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE, encoding="utf-8")
    return lambda name: f"{tmp_path / 'mine.py'}:{name}"


def test_a_function_with_options_and_a_class(part):
    z = facts().validation[0]
    for method, factor in (
        (methods.get(part("doubled")), 2),
        (methods.get(part("doubled"), factor=5.0), 5),
        (methods.get(part("Whole")), 3),
    ):
        assert method.needs == frozenset()
        recipe = method.prepare(nn.Identity(), facts())
        assert recipe.loss(z, None, None).item() == pytest.approx(factor * z.sum().item())


def test_what_is_no_method_is_said(part):
    with pytest.raises(TstarError, match=r"must return a tstar\.methods\.Recipe, got Identity"):
        methods.get(part("nothing")).prepare(nn.Identity(), facts())
    with pytest.raises(TstarError, match="must have needs, prepare"):
        methods.get(part("Half"))
