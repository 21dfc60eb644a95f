"""The highest T that a way of training can learn at, and the set of coefficients that uses it."""

import json
import math
from pathlib import Path

import pytest

import tstar
from tstar import TstarError
from tstar.formula import similar
from tstar.formula.coefficients import Coefficients, get, published, training_aware
from tstar.formula.law import Budget, limit, within
from tstar.formula.training import Training

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


LAW = Budget(sgd=0.5, adam=3.0, minimum=0.5, power=0.25, maximum=32.0)
ADAM = Training("adamw", 1e-3, 100)


def test_the_law_by_hand():
    how = Training("sgd", 0.1, 1600, 0.9, batch_size=10)
    assert limit(LAW, 90, 10, how)[0] == pytest.approx(0.5 * 3 * 160**0.25)
    assert limit(LAW, 90, 10, ADAM)[0] == 3.0


def test_how_the_law_scales():
    def T(M=64, K=10, lr=0.01, steps=800, batch_size=32, momentum=0.9):
        how = Training("sgd", lr, steps, momentum, batch_size=batch_size)
        return limit(LAW, M, K, how)[0]

    for change in ({"lr": 0.16}, {"M": 1024}):
        assert T(**change) / T() == pytest.approx(4), change
    for change in ({"steps": 12_800}, {"batch_size": 2}):
        assert T(**change) / T() == pytest.approx(2), change
    assert T(K=160) / T() == pytest.approx(0.5)
    assert T(momentum=0.0) / T() == pytest.approx(0.1**0.25)


def test_the_bound_of_the_first_atlas_is_there_by_name():
    how = {"optimizer": "sgd", "lr": 0.01, "steps": 800}
    bound = tstar.explain(512, 10, variant="budget", **how)
    assert bound.temperature == pytest.approx(0.28 * math.sqrt(8 * 512 / 10))
    for scenario in (None, "scratch", "finetune"):
        assert tstar.explain(512, 10, scenario=scenario, **how).variant == "speed"
    adam = tstar.explain(384, 77, optimizer="adamw", lr=3e-4, steps=120, variant="budget")
    assert adam.temperature == pytest.approx(0.026 * 0.036 * 384)


def test_a_batch_size_that_is_not_told_is_64():
    told, untold = (Training("sgd", 0.1, 800, batch_size=size) for size in (64, None))
    assert limit(LAW, 64, 10, told) == limit(LAW, 64, 10, untold)
    assert limit(LAW, 64, 10, Training("sgd", 0.1, 800, 0.9)) == limit(LAW, 64, 10, untold)


def test_nothing_is_advised_that_was_not_tried():
    assert within(LAW, 0.1, 5.0) == 0.5
    assert within(LAW, 100.0, 5.0) == 32.0
    assert within(LAW, 7.0, 5.0) == 7.0  # the paper's T* is no bound of the law
    low = tstar.explain(16, 200, lr=1e-5, optimizer="sgd", steps=100)
    assert low.computed == training_aware().budget.minimum
    assert low.leave  # nothing so short was measured
    assert "lowest that is advised" in low.limit_text()
    assert json.loads(json.dumps(low.to_dict()))["limit"]["decides"] is True


def test_where_the_paper_was_fitted_the_law_agrees_with_it():
    """SGD at 0.1, 200 epochs of 128 on ten classes: 7,800 steps; within the spread of the paper's own variants."""
    for M in (64, 128, 256, 512):
        law = tstar.explain(M, 10, lr=0.1, optimizer="sgd", steps=7_800, batch_size=128).computed
        variants = [tstar.temperature(M, 10, variant=name) for name in ("base", "cn")]
        assert 0.75 * min(variants) <= law <= 1.25 * max(variants), M


def test_a_bound_of_an_older_file_still_bounds(tmp_path):
    assert within(BUDGET, 0.01, 3.0) == 0.25  # the lowest that was tried …
    assert within(BUDGET, 0.01, 0.1) == 0.1  # … unless T* itself is lower
    own = Coefficients("mine", 0.4, 1.0, budget=Budget(0.3, 0.02))
    how = {"optimizer": "sgd", "coefficients": own}
    low = tstar.explain(64, 10, lr=0.01, steps=100, **how)
    assert low.temperature == pytest.approx(0.3 * math.sqrt(6.4))
    assert "allows at most" in str(low)
    assert tstar.explain(64, 10, lr=0.1, steps=100_000, **how).temperature == pytest.approx(4.2)


def test_without_the_training_it_is_the_papers():
    assert tstar.temperature(64, 10) == tstar.temperature(64, 10, variant="cn")
    assert "limit" not in tstar.explain(64, 10).to_dict()
    assert not {"budget", "speed"} & set(published())
    assert (get("budget").variant, get("speed").variant) == ("budget", "speed")


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


def test_c_is_that_of_the_first_atlas():
    """The law's form is given; c alone is fitted, on the runs that ship as the first atlas."""
    pytest.importorskip("scipy")
    from tstar.curves import judge
    from tstar.evidence import atlas, cases

    runs = atlas(1)
    found = [c for c in cases(runs, "batch") if c.facts["optimizer"] == "sgd"]

    def loss(c):
        law = Budget(c, 2.0, 0.25, power=0.25, maximum=64.0)
        points = []
        for case in found:
            facts = case.facts
            how = Training("sgd", facts["lr"], int(facts["steps"]), facts["momentum"], batch_size=int(facts["batch_size"]))  # fmt: skip
            T = within(law, limit(law, facts["num_features"], facts["num_classes"], how)[0], 0.0)
            points.append(judge(case, T).regret)
        return sum(points) / len(points)

    shipped = training_aware().budget.sgd
    assert loss(shipped) < min(loss(shipped / 2), loss(2 * shipped))
    best = min(loss(shipped * factor) for factor in (0.7, 0.8, 0.9, 1.1, 1.25, 1.4))
    assert loss(shipped) < best + 0.15  # points: a flat valley


def test_the_measured_range_is_that_of_the_second_atlas():
    budget = training_aware().budget
    spent: dict[str, list[float]] = {"sgd": [], "adam": []}
    for row in similar.stored()["rows"]:
        factor = (
            0.2 if row["optimizer"] == "sgd" else 2.0
        )  # momentum 0.9, a rate that falls to zero
        spent[row["optimizer"]].append(factor * math.exp(row["coordinates"]["travel"]))
    for kind, values in spent.items():
        low, high = budget.fitted[kind]
        assert low == pytest.approx(min(values), rel=0.1), (kind, min(values))
        assert high == pytest.approx(max(values), rel=0.1), (kind, max(values))


def test_trainings_that_were_not_measured_are_flagged():
    def flags(optimizer, lr, steps, M=64, K=10):
        found = tstar.explain(M, K, optimizer=optimizer, lr=lr, steps=steps).flags
        return [flag.quantity for flag in found if flag.level == "extrapolation"]

    assert flags("adamw", 1e-3, 800) == []
    assert flags("adamw", 1e-6, 10) == ["lr·steps"]
    assert flags("adamw", 3e-3, 100_000) == ["lr·steps"]
    assert flags("sgd", 0.1, 400) == []
    assert flags("sgd", 1e-4, 100) == ["lr·steps"]
    assert flags("sgd", 0.1, 400, M=8) == ["num_features"]
    assert flags("sgd", 0.1, 400, K=1000) == ["num_classes"]


def test_fine_tuning_with_adam_has_a_temperature_of_its_own():
    law = Budget(sgd=0.5, adam=3.0, minimum=0.25, power=0.25, maximum=32.0, adam_finetune=0.75)
    tuned = Training("adamw", 1e-3, 100, scenario="finetune")
    assert limit(law, 64, 10, tuned) == (0.75, "the T of Adam and AdamW in fine-tuning")
    assert limit(law, 64, 10, ADAM)[0] == 3.0
    assert limit(LAW, 64, 10, tuned)[0] == 3.0  # a law without one
    sgd = [limit(each, 64, 10, Training("sgd", 0.1, 9, scenario="finetune"))[0] for each in (law, LAW)]  # fmt: skip
    assert sgd[0] == sgd[1]
    assert Budget.from_dict(law.to_dict()) == law
    assert "adam_finetune" not in LAW.to_dict()
    with pytest.raises(TstarError, match="adam_finetune of a budget must be positive"):
        Budget(sgd=0.5, adam=3.0, adam_finetune=0.0)


def test_what_ships_for_fine_tuning_is_what_was_found():
    import pandas as pd

    from research.tuning_temperatures import chosen

    path = Path(__file__).parents[2] / "results" / "atlas2" / "tuning_temperatures.csv"
    assert training_aware().budget.adam_finetune == chosen(pd.read_csv(path))
