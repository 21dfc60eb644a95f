"""A condition's record against numbers planted in its runs."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("pandas")

from research.conditions import TUNING, draw
from research.running import identity
from research.second_atlas import missing
from research.user_gains import Measured, measured


def planted(condition):
    """Every run of a condition: plain is best at the user's rate; BN gains 3 points at T = 1, two more at its middle."""
    found = {}
    while todo := missing(condition, found):
        for spec in todo:
            value = 0.5 - 0.01 * (spec.config != condition.plain.config) - 0.001 * spec.seed
            if spec.norm == "batch":
                value += 0.03 if spec.temperature == 1 else 0.05
            found[identity(spec)] = {
                "status": "done", "val_accuracy": value, "test_accuracy": value, "train_accuracy": 1.0,
                "num_train": 500, "key": f"{len(found):024d}", "extra": json.dumps({"backbone_factor": 2.0}),
            }  # fmt: skip
    return found


def test_a_record_has_the_planted_gains():
    condition = draw(3)
    row = Measured(condition, planted(condition)).record()
    assert row["plain"] == pytest.approx(50)
    assert row["tuned"] == pytest.approx(50)
    assert row["bn1"] - row["plain"] == pytest.approx(3)
    assert row["bn"] - row["plain"] == pytest.approx(5)
    assert row["bn_1"] - row["plain_1"] == pytest.approx(5)
    assert row["faster_bn"] == pytest.approx(54)
    assert row["backbone_factor"] == 2.0
    assert len(json.loads(row["curve"])) == 5


def test_between_temperatures_accuracy_is_linear_in_the_logarithm():
    condition = draw(3)
    found = Measured(condition, planted(condition))
    low, high = sorted(found.curve())[1:3]
    assert found.at((low * high) ** 0.5) == pytest.approx((found.at(low) + found.at(high)) / 2)


def test_only_complete_conditions_count():
    first, second = planted(draw(0)), planted(draw(1))
    second.pop(next(iter(second)))
    assert [m.condition.index for m in measured(first | second, conditions=2)] == [0]


def test_two_draws_of_one_condition_count_once():
    found = planted(draw(TUNING + 1))
    assert identity(draw(TUNING + 233).plain) == identity(draw(TUNING + 1).plain)
    assert [m.condition.index for m in measured(found)] == [TUNING + 1]


def test_a_run_that_diverged_counts_as_chance():
    condition = draw(3)
    found = planted(condition)
    found[identity(replace(condition.plain, norm="batch"))]["status"] = "diverged"
    record = Measured(condition, found).record()
    assert record["bn1"] == pytest.approx(record["chance"])
