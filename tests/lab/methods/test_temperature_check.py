"""Temperature check: its grid, its search, and what it refuses."""

import math
from itertools import pairwise

import pytest
from torch import nn

from tests.lab.methods.networks import Net, X, Y, ce, facts
from tstar import TstarError
from tstar.lab import methods


def test_the_grid_is_log_spaced_over_the_papers_range():
    found = methods.search(methods.get("temperature-check"), lambda method: 0.5)
    T = [trial.temperature for trial in found.trials]
    assert len(T) == 7
    assert max(T) == pytest.approx(100)
    assert min(T) == pytest.approx(0.1)
    ratios = {round(a / b, 9) for a, b in pairwise(T)}
    assert ratios == {round(10**0.5, 9)}


def test_a_search_is_not_one_run():
    with pytest.raises(TstarError, match=r"tstar\.lab\.methods\.search"):
        methods.get("temperature-check").prepare(nn.Linear(3, 2), methods.Setting(3, 2))
    with pytest.raises(TstarError, match="does not search"):
        methods.search(methods.get("default"), lambda method: 1.0)


def test_a_candidate_is_a_training_at_a_fixed_temperature():
    tried = []
    method = methods.get("temperature-check:points=2")
    methods.search(method, lambda m: tried.append(m) or 1.0)
    recipe = tried[0].prepare(Net(), facts(label_smoothing=0.1))
    z = Net()(X).detach().numpy()
    assert recipe.loss(recipe.model(X), Y, X).item() == pytest.approx(ce(z / 100, Y, 0.1), rel=1e-6)


@pytest.mark.parametrize(
    ("options", "match"),
    [({"points": 1}, "at least 2"), ({"lowest": 10.0, "highest": 1.0}, "lowest < highest")],
)
def test_a_search_without_a_range_is_refused(options, match):
    with pytest.raises(TstarError, match=match):
        methods.search(methods.get("temperature-check", **options), lambda method: 1.0)


def peak(at: float):
    """A validation accuracy that peaks at one temperature."""
    return lambda method: 1 - abs(math.log(method.options["temperature"] / at))


def test_the_search_takes_the_best_candidate_and_counts_its_runs():
    method = methods.get("temperature-check", points=13)
    found = methods.search(method, peak(5.0))
    assert len(found.trials) == 13
    nearest = min((t.temperature for t in found.trials), key=lambda T: abs(math.log(T / 5)))
    assert found.best.temperature == nearest


def test_of_equal_scores_the_one_nearest_to_one_wins():
    found = methods.search(methods.get("temperature-check"), lambda method: 0.5)
    assert found.best.temperature == pytest.approx(1.0)


def test_failed_runs_count_but_cannot_win():
    def score(method):
        return (
            None
            if method.options["temperature"] > 1.5
            else (math.nan if method.options["temperature"] > 0.9 else 0.4)
        )

    found = methods.search(methods.get("temperature-check"), score)
    assert found.best.score == 0.4
    assert len(found.trials) == 7
    with pytest.raises(TstarError, match="all 7 failed"):
        methods.search(methods.get("temperature-check"), lambda method: None)
