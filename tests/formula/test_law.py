"""The highest T that a way of training can learn at, and the set of coefficients that uses it."""

import json
import math

import pytest

import tstar
from tstar import TstarError
from tstar.formula.coefficients import Coefficients, get, published, training_aware
from tstar.formula.law import Budget, limit, within
from tstar.formula.training import Training, family

BUDGET = Budget(sgd=0.5, adam=0.1)


def test_the_bounds_by_hand():
    assert limit(BUDGET, 64, 16, Training("sgd", 0.1, 1000))[0] == pytest.approx(0.5 * 20)
    assert limit(BUDGET, 64, 16, Training("adam", 1e-3, 1000))[0] == pytest.approx(6.4)


@pytest.mark.parametrize(("name", "power"), [("sgd", 0.5), ("adam", 1.0)])
def test_how_the_bound_scales(name, power):
    def T(M=64, K=10, lr=0.01, steps=800):
        return limit(BUDGET, M, K, Training(name, lr, steps))[0]

    assert T(lr=0.02, steps=400) == pytest.approx(T())  # only the product counts
    for change in ({"lr": 0.08}, {"steps": 6400}, {"M": 512}):
        assert T(**change) / T() == pytest.approx(8**power), change
    assert T(K=80) / T() == pytest.approx(8**-0.5 if name == "sgd" else 1.0)


def test_momentum_lengthens_the_steps_of_sgd_alone():
    plain = limit(BUDGET, 64, 10, Training("sgd", 0.1, 800, momentum=0.0))[0]
    assert plain == pytest.approx(limit(BUDGET, 64, 10, Training("sgd", 0.01, 800))[0])
    assert Training("adam", 0.1, 10, momentum=0.0).spent == 1.0


def test_where_the_paper_was_fitted_its_temperature_stays():
    """SGD at 0.1, 200 epochs of 128: at least 7,800 steps."""
    for M in (64, 128, 256, 512):
        for K in (10, 100, 200):
            aware = tstar.temperature(M, K, lr=0.1, optimizer="sgd", steps=7_800)
            assert aware == tstar.temperature(M, K, variant="cn"), (M, K)


def test_the_lower_of_the_two_decides_and_nothing_untried_is_advised():
    c = training_aware()
    assert c.budget is not None
    low = tstar.explain(64, 10, lr=0.01, optimizer="sgd", steps=800)
    assert low.temperature == pytest.approx(c.budget.sgd * math.sqrt(8 * 64 / 10))
    assert low.limit is not None
    assert low.limit.decides
    least = tstar.explain(64, 10, lr=1e-5, optimizer="adamw", steps=10)
    assert least.temperature == c.budget.minimum == 0.25
    assert "lowest that is advised" in str(least)
    assert within(BUDGET, 0.01, 3.0) == 0.25  # the lowest that was tried …
    assert within(BUDGET, 0.01, 0.1) == 0.1  # … unless T* itself is lower
    assert json.loads(json.dumps(least.to_dict()))["limit"]["decides"] is True


def test_without_the_training_it_is_the_papers():
    assert tstar.temperature(64, 10) == tstar.temperature(64, 10, variant="cn")
    assert "limit" not in tstar.explain(64, 10).to_dict()
    assert "budget" not in published()
    assert get("budget").variant == "budget"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"lr": 0.1}, "optimizer and steps are missing"),
        ({"lr": 0.1, "optimizer": "sgd"}, "steps is missing"),
        (
            {"lr": 0.1, "optimizer": "lion", "steps": 9, "variant": "budget"},
            "SGD and Adam's family",
        ),
        ({"lr": 0.1, "optimizer": "sdg", "steps": 9}, "did you mean 'sgd'"),
        ({"lr": 0, "optimizer": "sgd", "steps": 9}, "lr must be positive"),
        ({"lr": math.nan, "optimizer": "sgd", "steps": 9}, "lr must be finite"),
        ({"lr": 0.1, "optimizer": "sgd", "steps": 0}, "steps must be a whole number"),
        ({"lr": 0.1, "optimizer": "sgd", "steps": 9, "momentum": 1.0}, "momentum < 1 must hold"),
        ({"momentum": 1.0}, "momentum < 1 must hold"),
        ({"variant": "budget"}, "lr, optimizer and steps must be given"),
        ({"num_classes": None, "lr": 0.1, "optimizer": "sgd", "steps": 9}, "num_classes must be"),
    ],
)
def test_bad_input(words, message):
    facts = {"num_features": 64, "num_classes": 10} | words
    with pytest.raises(TstarError, match=message):
        tstar.temperature(**facts)


def test_a_set_with_a_budget_is_saved_and_loaded(tmp_path):
    own = Coefficients("mine", 0.4, 1.0, delta=-0.1, budget=Budget(0.3, 0.02, 0.5, {"sgd": (1, 9)}))
    own.save(tmp_path / "mine.json")
    assert Coefficients.load(tmp_path / "mine.json") == own
    T = tstar.temperature(64, 10, lr=0.01, optimizer="sgd", steps=100, coefficients=own)
    assert pytest.approx(0.3 * math.sqrt(6.4)) == T


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"sgd": 0.3}, "needs adam"),
        ({"sgd": 0.3, "adam": -1}, "adam of a budget must be positive"),
        ({"sgd": "x", "adam": 1}, "sgd of a budget must be a number"),
        ({"sgd": 0.3, "adam": 1, "adma": 2}, "did you mean 'adam'"),
        ({"sgd": 0.3, "adam": 1, "fitted": {"sgd": [1]}}, r"must be \[low, high\]"),
        ({"sgd": 0.3, "adam": 1, "fitted": {"sgd": [9, 1]}}, r"must be \[low, high\]"),
        ({"sgd": 0.3, "adam": 1, "fitted": {"sdg": [1, 9]}}, "range for sgd and adam"),
        ({"sgd": 0.3, "adam": 1, "fitted": None}, "range for sgd and adam"),
        ([1, 2], "must be a table"),
    ],
)
def test_bad_budgets(budget, message):
    with pytest.raises(TstarError, match=message):
        Coefficients.from_dict({"name": "x", "alpha": 1, "beta": 0, "budget": budget})


def test_the_shipped_numbers_are_those_of_the_shipped_atlas():
    pytest.importorskip("scipy")
    from research.laws.candidates import LAWS
    from research.laws.fitting import fit_law
    from tstar.evidence import atlas, cases

    c, a = (math.exp(v) for v in fit_law(LAWS["limit"], [c.curve() for c in cases(atlas())]))
    budget = training_aware().budget
    assert budget is not None
    assert budget.sgd == pytest.approx(c, rel=0.05)
    assert budget.adam == pytest.approx(a, rel=0.05)


def test_the_measured_range_is_that_of_the_atlas():
    from tstar.evidence import atlas, cases

    budget = training_aware().budget
    assert budget is not None
    spent: dict[str, list[float]] = {"sgd": [], "adam": []}
    for case in cases(atlas(), "batch"):
        kind = family(case.facts["optimizer"])
        assert kind is not None
        spent[kind].append(case.facts["lr"] * case.facts["steps"])
    for kind, values in spent.items():
        assert budget.fitted[kind] == pytest.approx((min(values), max(values)), rel=1e-6)


def test_trainings_that_were_not_measured_are_flagged():
    def flags(optimizer, lr, steps, M=64, K=10):
        found = tstar.explain(M, K, optimizer=optimizer, lr=lr, steps=steps).flags
        return [flag.quantity for flag in found if flag.level == "extrapolation"]

    assert flags("adamw", 1e-3, 800) == []
    assert flags("adamw", 1e-6, 10) == ["lr·steps"]
    assert flags("adamw", 3e-4, 100_000) == ["lr·steps"]
    assert flags("sgd", 0.1, 100_000) == []  # the paper has been there
    assert flags("sgd", 1e-4, 100) == ["lr·steps"]
    assert flags("sgd", 0.1, 100_000, M=48) == ["num_features"]  # T* decides: the paper's range
    assert flags("sgd", 0.01, 200, M=48) == []  # the budget decides: the atlas's
