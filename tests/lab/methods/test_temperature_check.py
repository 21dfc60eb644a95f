"""Temperature check: its grid, its search, and what it refuses."""

import math

import pytest
from torch import nn

from tests.lab.methods.networks import Net, X, Y, Z, ce, facts
from tstar import TstarError
from tstar.lab import methods


def searched(score, **options):
    return methods.search(methods.get("temperature-check", **options), score)


def test_the_grid_is_log_spaced_over_the_papers_range_and_of_equals_the_nearest_to_one_wins():
    found = searched(lambda method: 0.5)
    wanted = [100 / 10 ** (i / 2) for i in range(7)]
    assert [trial.temperature for trial in found.trials] == pytest.approx(wanted)
    assert found.best.temperature == pytest.approx(1.0)


def test_a_search_is_not_one_run():
    with pytest.raises(TstarError, match=r"tstar\.lab\.methods\.search"):
        methods.get("temperature-check").prepare(nn.Linear(3, 2), methods.Setting(3, 2))
    with pytest.raises(TstarError, match="does not search"):
        methods.search(methods.get("default"), lambda method: 1.0)


def test_a_candidate_is_a_training_at_a_fixed_temperature():
    tried = []
    searched(lambda m: tried.append(m) or 1.0, points=2)
    recipe = tried[0].prepare(Net(), facts(label_smoothing=0.1))
    assert recipe.loss(recipe.model(X), Y, X).item() == pytest.approx(ce(Z / 100, 0.1), rel=1e-6)


@pytest.mark.parametrize(
    ("options", "match"),
    [({"points": 1}, "at least 2"), ({"lowest": 10.0, "highest": 1.0}, "lowest < highest")],
)
def test_a_search_without_a_range_is_refused(options, match):
    with pytest.raises(TstarError, match=match):
        searched(lambda method: 1.0, **options)


def test_the_search_takes_the_best_candidate_and_counts_its_runs():
    found = searched(lambda m: 1 - abs(math.log(m.options["temperature"] / 5)), points=13)
    assert len(found.trials) == 13
    nearest = min((t.temperature for t in found.trials), key=lambda T: abs(math.log(T / 5)))
    assert found.best.temperature == nearest


def test_failed_runs_count_but_cannot_win():
    def score(method):
        T = method.options["temperature"]
        return None if T > 1.5 else math.nan if T > 0.9 else 0.4

    found = searched(score)
    assert found.best.score == 0.4
    assert len(found.trials) == 7
    with pytest.raises(TstarError, match="all 7 failed"):
        searched(lambda method: None)
