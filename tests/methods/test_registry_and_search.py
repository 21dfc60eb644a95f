"""Methods by name, their options, and the search of temperature check."""

import math
from itertools import pairwise

import pytest

from tstar import TstarError, methods
from tstar.methods.label_smoothing import Smoothed

TABLE_1 = [
    "default",
    "sqrt-m",
    "insert-ln",
    "label-smoothing",
    "relaxed-softmax",
    "temperature-check",
    "temperature-scaling",
    "kd",
    "meta-kd",
    "ctkd",
    "logit-standardization",
    "heated-up",
    "adacos-fixed",
    "normface-bound",
    "learned-temperature",
    "ours-base",
    "ours-csg",
    "ours-cn",
    "ours-csgcn",
]


def test_every_row_is_there_under_its_name():
    assert set(TABLE_1) <= set(methods.list())
    for name in methods.list():
        assert methods.get(name).name == name
        assert methods.get(name).needs <= {"csg", "teacher", "validation"}


def test_options_by_keyword_and_in_the_name():
    assert methods.get("kd", tau=2.0) == methods.get("kd:tau=2.0")
    assert methods.get("insert-ln:affine=false") == methods.get("insert-ln", affine=False)
    assert methods.get("ours-cn:schedule=cosine:start=2").start == 2
    smoothed = methods.get("temperature-check:points=9+label-smoothing")
    assert isinstance(smoothed, Smoothed)
    assert len(smoothed.candidates) == 9
    assert smoothed.epsilon == 0.1
    assert smoothed.at(2.0).method.temperature == 2.0


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("insert-nl", {}, "insert-ln"),
        ("kd", {"tua": 2}, "tau"),
        ("default", {"T": 2}, "no options"),
        ("ours-cn", {"variant": "csg"}, "option of method"),
        ("kd", {"tau": -1}, "positive"),
        ("kd", {"tau": "4"}, "tau must be a number"),
        ("insert-ln", {"affine": "no"}, "true or false"),
        ("label-smoothing", {"epsilon": 1.0}, "epsilon < 1"),
        ("ours-cn:schedule", {}, "key=value"),
        ("ours-cn", {"schedule": "cosinus"}, "cosine"),
        ("temperature-check", {"points": 1}, "points"),
        ("temperature-check", {"lowest": 10.0, "highest": 1.0}, "lowest < highest"),
        ("temperature-check", {"sampler": "bayes"}, "sampler"),
        ("learned-temperature", {"start": 200.0}, "highest"),
        ("normface-bound", {"probability": 1.0}, "probability"),
        ("default+label-smoothing+label-smoothing", {}, "must end"),
    ],
)
def test_bad_names_and_options_are_refused_with_a_hint(name, options, match):
    with pytest.raises(TstarError, match=match):
        methods.get(name, **options)


def test_the_grid_is_log_spaced_over_the_papers_range():
    T = methods.get("temperature-check").candidates
    assert len(T) == 7
    assert max(T) == pytest.approx(100)
    assert min(T) == pytest.approx(0.1)
    ratios = {round(a / b, 9) for a, b in pairwise(T)}
    assert ratios == {round(10**0.5, 9)}


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


def test_a_search_is_not_one_run():
    from torch import nn

    with pytest.raises(TstarError, match=r"tstar\.methods\.search"):
        methods.get("temperature-check").prepare(nn.Linear(3, 2), methods.Facts(3, 2))
    with pytest.raises(TstarError, match="does not search"):
        methods.search(methods.get("default"), lambda method: 1.0)
