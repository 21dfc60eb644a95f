"""The table: the first row that a case meets, its limits, and how it is printed."""

from dataclasses import replace

import pytest

from tests.cases import random_case
from tstar import recipes
from tstar.recipes import Gain, Row, facts, find_row, rows


def test_each_row_names_what_a_case_has_and_the_last_one_takes_all():
    known = facts(random_case(0)).keys()
    for row in rows():
        assert row.where.keys() <= known, row.name
        assert row.changes or not (row.native or row.widened), row.name
    assert rows()[-1].where == {}
    assert len({row.name for row in rows()}) == len(rows()) <= 12


def test_every_row_is_met_by_some_case():
    met = {find_row(random_case(seed)).name for seed in range(3000)}
    assert met == {row.name for row in rows()}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_what_a_row_gained_is_consistent_and_holds(row):
    for gain in filter(None, (row.native, row.widened)):
        assert gain.low <= gain.median <= gain.high
        assert gain.low <= gain.mean <= gain.high or gain.n < 10
        assert 0 <= gain.lost + gain.gained <= 1
        assert gain.n > 0
    if row.changes:
        assert row.known
        assert row.source


def test_epochs_that_are_not_known_follow_from_steps_and_samples():
    case = random_case(0)
    known = {"steps": 1000, "batch_size": 32, "samples": 800}
    training = replace(case.training, epochs=None, **known)
    assert facts(replace(case, training=training))["epochs"] == 40
    unknown = replace(training, samples=None)
    assert facts(replace(case, training=unknown))["epochs"] is None


@pytest.mark.parametrize("name", ["steps", "num_classes", "lr", "epochs"])
def test_the_row_changes_at_its_stated_limits_and_nowhere_else(name):
    limits = {
        limit
        for row in rows()
        if isinstance(row.where.get(name), dict)
        for limit in row.where[name].values()
    }
    for seed in range(300):
        known = facts(random_case(seed))
        places = [(sum(value >= limit for limit in limits), value) for value in _grid(limits)]
        for place in range(len(limits) + 1):
            met = {_row_of({**known, name: value}) for where, value in places if where == place}
            assert len(met) <= 1, (name, place, met)


def _grid(limits):
    """Values on both sides of every limit, at it, and far away."""
    around = [limit * factor for limit in limits for factor in (0.5, 0.999, 1.0, 1.001, 2.0)]
    return sorted([1e-3, 1.0, 1e6, *around])


def _row_of(known):
    return next(row.name for row in rows() if row.meets(known))


@pytest.mark.parametrize(
    ("allowed", "value", "within"),
    [
        ({"from": 2}, 2, True),
        ({"from": 2}, 1.9, False),
        ({"below": 2}, 2, False),
        ({"from": 1, "below": 2}, 1.5, True),
        ({"from": 1}, None, False),
        (["a", "b"], "b", True),
        (["a", "b"], "c", False),
        (True, True, True),
        (True, False, False),
    ],
)
def test_a_condition(allowed, value, within):
    assert Row("a row", {"fact": allowed}, "do").meets({"fact": value}) is within


def test_the_rate_counts_in_multiples_of_the_usual_one():
    case = random_case(3)
    usual = case.usual_lr
    for factor in (0.1, 1.0, 3.0):
        scaled = replace(case, training=replace(case.training, lr=factor * usual))
        assert facts(scaled)["lr"] == pytest.approx(factor)


def test_the_table_as_text_has_every_row_and_its_numbers():
    gain = Gain(12, 0.5, 0.9, -1.0, 3.04, 0.4, 0.1)
    row = Row("SGD", {}, "BatchNorm and T.", norm="batch", native=gain, widened=replace(gain, n=7))
    header, native, widened = recipes.cells([row])
    assert len(header) == len(native) == len(widened)
    assert native == ["SGD", row.do, "12", "+0.5", "+0.9", "-1.0 to +3.0", "40%", "10%"]
    assert widened[:3] == ["widened heads", "", "7"]
    (_, unknown) = recipes.cells([Row("other", {}, "leave it.", known=False)])
    assert unknown == ["other", "leave it.", *["–"] * 6]
    assert {each.name for each in rows()} <= {first for first, *_ in recipes.cells()}
    assert "12 trainings" in str(gain)
