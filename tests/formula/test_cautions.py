"""Every concern, and every constant in it: each test fails when its constant moves."""

from dataclasses import replace

import pytest

import tstar
from tstar.formula import cautions, similar
from tstar.formula.law import Budget
from tstar.formula.training import Training


def codes(M=64, K=10, csg=None, variant=None, **training):
    found = tstar.explain(M, K, csg, variant=variant, **training).notices
    return {(notice.severity, notice.code) for notice in found}


@pytest.mark.parametrize(
    ("code", "inside", "outside"),
    [
        # the smallest change across each limit that a user could make
        ("few-steps", {"optimizer": "adam", "steps": 7_800}, {"optimizer": "adam", "steps": 7_799}),
        ("other-lr", {"optimizer": "sgd", "lr": 0.05}, {"optimizer": "sgd", "lr": 0.049}),
        ("other-lr", {"optimizer": "sgd", "lr": 0.2}, {"optimizer": "sgd", "lr": 0.201}),
        ("few-classes", {"K": 8}, {"K": 7}),
        ("batch-size", {"batch_size": 8}, {"batch_size": 7}),
        ("batch-size", {"batch_size": 256}, {"batch_size": 257}),
        ("batch-of-one", {"batch_size": 2}, {"batch_size": 1}),
        ("label-smoothing", {"label_smoothing": 0.0}, {"label_smoothing": 0.001}),
        (
            "no-batch-size",
            {"optimizer": "sgd", "lr": 0.1, "steps": 800, "batch_size": 64},
            {"optimizer": "sgd", "lr": 0.1, "steps": 800},
        ),
        (
            "small-budget",
            {"optimizer": "sgd", "lr": 0.1, "steps": 3_000, "variant": "cn"},
            {"optimizer": "sgd", "lr": 0.1, "steps": 2_999, "variant": "cn"},
        ),
    ],
)
def test_where_each_caution_begins(code, inside, outside):
    assert code not in {found for _, found in codes(**inside)}
    assert code in {found for _, found in codes(**outside)}


def test_a_small_budget_is_grave_below_thirty_and_above_two():
    how = {"optimizer": "sgd", "lr": 0.1, "variant": "cn"}
    assert ("caution", "small-budget") in codes(steps=300, **how)
    assert ("warning", "small-budget") in codes(steps=299, **how)
    cool = {"M": 64, "K": 53}  # T* = 2.06
    assert tstar.temperature(64, 53, variant="cn") > cautions.HOT == 2.0
    assert ("warning", "small-budget") in codes(steps=299, **cool, **how)
    assert tstar.temperature(64, 55, variant="cn") < cautions.HOT
    assert ("caution", "small-budget") in codes(steps=299, M=64, K=55, **how)


def test_the_papers_fine_tuning_rate_is_a_note():
    how = {"optimizer": "sgd", "scenario": "finetune", "variant": "cn"}
    assert ("note", "other-lr") in codes(lr=0.01, **how)
    assert ("caution", "other-lr") in codes(lr=0.02, **how)


def test_the_transformers_rate():
    def found(lr, name="sgd"):
        return [n.code for n in cautions.transformer_rate(Training(name, lr))]

    assert found(0.03) == []
    assert found(0.031) == ["transformer-lr"]
    assert found(0.1, "adam") == []


@pytest.mark.parametrize("name", ["lion", "LAMB", "adafactor", "rmsprop", "muon", "lbfgs"])
def test_optimizers_that_were_not_measured_get_safe_advice_and_one_caution(name):
    result = tstar.explain(512, 10, optimizer=name, lr=1e-4, steps=500)
    assert result.temperature == 1 < result.computed
    assert [(n.severity, n.code) for n in result.notices] == [("caution", "other-optimizer")]
    assert f"{result.computed:.3g}" in result.notices[0].message
    assert tstar.temperature(512, 10, optimizer=name) == 1  # a bare number is safe, too
    named = tstar.explain(512, 10, optimizer=name, variant="cn")
    assert named.temperature == named.computed  # who names a variant gets it, and the caution
    assert "other-optimizer" in {n.code for n in named.notices}


@pytest.fixture
def near(monkeypatch):
    """As if trainings like any had been measured, and had gained."""
    found = similar.Expectation(2.0, 1.0, 3.0, 10, 0, 20, 0.1, far=False, gained=True, rows=())
    monkeypatch.setattr(similar, "nearest", lambda *given: found)


def test_number_and_warning_are_one_decision(near):
    """SGD 0.01, 200 steps, fine-tuning: not "train at 0.365" with a warning to train at 1."""
    how = {"optimizer": "sgd", "lr": 0.01, "steps": 200}
    tuned = tstar.explain(64, 100, scenario="finetune", **how)
    assert tuned.computed == pytest.approx(0.61 * 0.8 * (200 / 640) ** 0.25)
    assert tuned.temperature == 1
    assert str(tuned).count("Train at") == 1
    hot = tstar.explain(512, 10, scenario="finetune", optimizer="sgd", lr=0.1, steps=2000)
    assert hot.temperature == hot.computed > 1


def test_the_gravest_comes_first():
    found = tstar.explain(
        64,
        10,
        variant="cn",
        optimizer="sgd",
        lr=0.01,
        steps=100,
        scenario="finetune",
        batch_size=1,
        label_smoothing=0.1,
    ).notices
    order = [("warning", "caution", "note").index(notice.severity) for notice in found]
    assert order == sorted(order)
    assert {*order} == {0, 1, 2}


def test_what_was_measured_for_the_papers_set_is_not_said_of_ones_own():
    own = tstar.Coefficients(
        "cn", alpha=1.0, beta=0.0
    )  # the name alone does not make it the paper's
    for training in (
        {},
        {"optimizer": "adam", "lr": 1e-3, "steps": 10},
        {"optimizer": "sgd", "lr": 9.0},
    ):
        assert tstar.explain(64, 3, coefficients=own, **training).notices == ()
        assert tstar.explain(64, 3, variant="cn", **training).notices != ()
    assert tstar.temperature(64, coefficients=own, optimizer="sgd", lr=0.1) == 8.0


def test_the_higher_rate_comes_with_its_own_temperature():
    how = {"optimizer": "sgd", "steps": 500, "batch_size": 64}
    found = {n.code: n.message for n in tstar.explain(64, 10, lr=0.1, **how).notices}
    faster = tstar.temperature(64, 10, lr=0.3, **how)
    assert f"3 times the rate (lr = 0.3) at T = {faster:.3g}" in found["higher-rate"]


def test_a_bound_is_told_where_it_sets_the_temperature():
    how = {"M": 512, "K": 10, "optimizer": "sgd", "variant": "budget"}
    assert ("note", "budget") in codes(lr=0.01, steps=800, **how)
    assert ("note", "budget") not in codes(lr=0.1, steps=100_000, **how)


def test_a_schedule_that_could_not_be_read_is_named():
    read = Training("sgd", 0.1, 800, schedule="Mine", rate_factor=0.5)
    unread = Training("sgd", 0.1, 800, schedule="Mine")
    assert "schedule-unread" not in {code for _, code in codes(optimizer=read)}
    assert "schedule-unread" not in {code for _, code in codes(optimizer="sgd")}
    found = tstar.explain(64, 10, optimizer=unread).notices
    (said,) = (notice for notice in found if notice.code == "schedule-unread")
    assert "Mine" in said.message


def test_a_temperature_below_one_is_cautioned_with_sgd_alone():
    own = tstar.Coefficients("mine", 2.0, 1.0, budget=Budget(sgd=1.0, adam=0.5))

    def below(optimizer, lr):
        found = tstar.explain(16, 2, coefficients=own, optimizer=optimizer, lr=lr, steps=40)
        return found.computed < 1, "sgd-below-one" in {notice.code for notice in found.notices}

    assert below("sgd", 1e-4) == (True, True)
    assert below("sgd", 0.1) == (False, False)
    assert below("adam", 1e-4) == (True, False)


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"optimizer": "sgd", "lr": 0.1}, ["steps"]),
        ({"optimizer": "sgd"}, ["lr", "steps"]),
        ({}, ["optimizer", "lr", "steps"]),
    ],
)
def test_what_is_missing_is_listed_in_a_sentence(given, missing):
    words = [cautions.WORDS[name] for name in missing]
    listed = " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
    found = tstar.explain(64, 10, **given).notices
    (said,) = (notice for notice in found if notice.code == "unknown-training")
    assert listed in said.message


def test_a_small_budget_at_each_of_its_limits():
    def said(spent, T):
        return [(n.severity, n.code) for n in cautions._budget(spent, T)]

    assert said(10.0, cautions.HOT) == [("caution", "small-budget")]
    assert said(10.0, cautions.HOT + 1e-9) == [("warning", "small-budget")]
    assert said(cautions.HARMFUL_BUDGET, 9.0) == [("caution", "small-budget")]
    assert said(cautions.SMALL_BUDGET, 9.0) == []


def test_a_temperature_raised_to_one_is_said_to_be(near):
    how = {"optimizer": "sgd", "lr": 0.01, "steps": 200, "batch_size": 64}
    tuned = tstar.explain(64, 100, scenario="finetune", **how)
    assert tuned.temperature == 1 > tuned.computed
    (said,) = (n for n in tuned.notices if n.code == "sgd-below-one")
    assert "so T = 1 is advised" in said.message
    assert f"{tuned.computed:.3g}" in said.message
    scratch = tstar.explain(64, 100, **how)
    assert scratch.temperature == scratch.computed < 1
    (said,) = (n for n in scratch.notices if n.code == "sgd-below-one")
    assert "pass scenario='finetune'" in said.message


@pytest.mark.parametrize(
    ("far", "gained", "code"),
    [(True, True, "far"), (True, False, "far"), (False, False, "no-gain")],
)
def test_why_a_model_is_left(monkeypatch, far, gained, code):
    found = similar.Expectation(2.0, 1.0, 3.0, 9, 1, 20, 2.34, far=far, gained=gained, rows=())
    monkeypatch.setattr(similar, "nearest", lambda *given: found)
    result = tstar.explain(64, 10, optimizer="sgd", lr=0.1, steps=500, batch_size=64)
    assert result.leave
    assert result.temperature == 1 != result.computed
    (said,) = result.notices
    assert said.code == code
    assert f"T = {result.computed:.3g}" in said.message
    assert ("2.3 standard deviations" in said.message) is far
    assert ("The 20 most similar" in said.message) is (code == "no-gain")


def test_where_nothing_can_be_compared_no_distance_is_told(monkeypatch):
    monkeypatch.setattr(similar, "nearest", lambda *given: similar.NOTHING)
    result = tstar.explain(64, 10, optimizer="sgd", lr=0.1, steps=500, batch_size=64)
    assert "Nothing like this training was measured, so" in result.notices[0].message


def test_a_clipped_temperature_is_told_with_its_bound():
    (said,) = (n for n in tstar.explain(64, 5000, variant="cn").notices if n.code == "clipped")
    assert said.message.endswith("it was clipped to 1.")
    assert "clipped" not in {n.code for n in tstar.explain(64, 10, variant="cn").notices}


def test_words_in_a_sentence():
    assert cautions._and(["a"]) == "a"
    assert cautions._and(["a", "b"]) == "a and b"
    assert cautions._and(["a", "b", "c"]) == "a, b and c"


@pytest.mark.parametrize(
    ("told", "leave"),
    [
        ({}, False),
        ({"optimizer": "sgd"}, False),
        ({"optimizer": "sgd", "lr": 0.1}, False),
        ({"steps": 7_800}, False),
        ({"optimizer": "sgd", "lr": 0.01, "scenario": "finetune"}, False),  # the paper's
        ({"optimizer": "sgd", "lr": 0.01}, True),
        ({"optimizer": "adamw"}, True),
        ({"optimizer": "adamw", "lr": 1e-3}, True),
        ({"steps": 7_799}, True),
    ],
)
def test_a_fact_against_the_papers_training_leaves_the_model(told, leave):
    result = tstar.explain(64, 10, **told)
    assert result.leave is leave
    assert result.temperature == (1 if leave else result.computed)
    (said,) = (n for n in result.notices if n.code == "unknown-training")
    assert ("so nothing is advised" in said.message) is leave
    assert not tstar.explain(64, 10, variant="cn", **told).leave


def test_a_network_larger_than_any_that_was_measured_is_told():
    sgd = Training("sgd", 0.1, 1000)
    assert list(cautions.network_size(sgd, 1_100_000)) == []
    (notice,) = cautions.network_size(sgd, 25_600_000)
    assert (notice.severity, notice.code) == ("caution", "large-network")
    assert "25.6 million parameters" in notice.message
    assert "had up to 1.1 million" in notice.message
    assert list(cautions.network_size(replace(sgd, scenario="finetune"), 25_600_000)) == []
