"""Temperature check: its grid, and what it refuses; tests/lab/training/test_running.py has its runs."""

import pytest
from torch import nn

from tests.lab.methods.networks import Net, X, Y, Z, ce, facts
from tstar import TstarError
from tstar.lab import methods


def test_the_grid_is_log_spaced_over_the_papers_range():
    found = [m.options["temperature"] for m in methods.get("temperature-check").candidates]
    assert found == pytest.approx([100 / 10 ** (i / 2) for i in range(7)])


def test_a_search_is_not_one_run():
    with pytest.raises(TstarError, match="a search of 7 training runs"):
        methods.get("temperature-check").prepare(nn.Linear(3, 2), methods.Setting(3, 2))
    assert methods.get("default").candidates == ()


def test_a_candidate_is_a_training_at_a_fixed_temperature():
    first, _ = methods.get("temperature-check", points=2).candidates
    recipe = first.prepare(Net(), facts(label_smoothing=0.1))
    assert recipe.loss(recipe.model(X), Y, X).item() == pytest.approx(ce(Z / 100, 0.1), rel=1e-6)


@pytest.mark.parametrize(
    ("options", "match"),
    [({"points": 1}, "at least 2"), ({"lowest": 10.0, "highest": 1.0}, "lowest < highest")],
)
def test_a_search_without_a_range_is_refused(options, match):
    with pytest.raises(TstarError, match=match):
        methods.get("temperature-check", **options)
