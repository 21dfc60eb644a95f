"""The search over training runs."""

import math

import pytest

from tstar import TstarError, methods


def peak(at: float):
    """A validation accuracy that peaks at one temperature."""
    return lambda method: 1 - abs(math.log(method.temperature / at))


def test_the_search_takes_the_best_candidate_and_counts_its_runs():
    method = methods.get("temperature-check", points=13)
    found = methods.search(method, peak(5.0))
    assert found.runs == len(found.trials) == 13
    nearest = min(method.candidates, key=lambda T: abs(math.log(T / 5)))
    assert found.best.temperature == nearest


def test_of_equal_scores_the_one_nearest_to_one_wins():
    found = methods.search(methods.get("temperature-check"), lambda method: 0.5)
    assert found.best.temperature == pytest.approx(1.0)


@pytest.mark.parametrize("sampler", ["tpe", "gp", "random", "qmc"])
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_optunas_samplers_search_the_same_range_and_repeat_with_the_seed(sampler):
    method = methods.get("temperature-check", sampler=sampler, points=12)
    assert method.candidates == ()
    first, second = (methods.search(method, peak(5.0), seed=3) for _ in range(2))
    assert first == second
    assert first.runs == 12
    assert all(0.0999999 <= t.temperature <= 100.0001 for t in first.trials)
    assert first.best == max(first.trials, key=lambda t: t.score)
    assert abs(math.log(first.best.temperature / 5)) < 0.7


def test_failed_runs_count_but_cannot_win():
    def score(method):
        return None if method.temperature > 1.5 else (math.nan if method.temperature > 0.9 else 0.4)

    found = methods.search(methods.get("temperature-check"), score)
    assert found.best.score == 0.4
    assert found.runs == 7
    with pytest.raises(TstarError, match="all 7 failed"):
        methods.search(methods.get("temperature-check"), lambda method: None)
