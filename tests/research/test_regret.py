"""Rules judged on conditions: regret, shares of the gain, noise."""

import math

import numpy as np
import pandas as pd
import pytest

import tstar
from research.regret import cases, compare, noise, scores
from tests.planted import curve, frame
from tstar.errors import TstarError


def test_the_oracle_is_chosen_on_validation_and_scored_on_test():
    runs = frame(lambda d, M: 4.0, datasets=("a",), val=lambda T, seed: 0.5 - abs(T - 16) / 1000)
    (case,) = cases(runs)
    assert case.curve().best == 16
    row = scores([case], {"four": lambda facts: 4.0}).iloc[0]
    assert row["best"] == pytest.approx(curve(16, 4.0))
    assert row["regret"] == pytest.approx(100 * (curve(16, 4.0) - curve(4, 4.0)))  # negative
    assert row["gain_bn"] == pytest.approx(100 * (curve(4, 4.0) - curve(1, 4.0)))
    assert math.isnan(row["gain"])  # plain was not run


def test_between_grid_points_accuracy_is_linear_in_the_logarithm():
    case = cases(frame(lambda d, M: 4.0, datasets=("a",)))[0].curve()
    assert case.at(math.sqrt(8 * 16)) == pytest.approx((curve(8, 4.0) + curve(16, 4.0)) / 2)
    assert case.at(1e6) == case.at(256)


def test_the_share_of_the_gain_is_one_for_the_oracle_and_zero_for_one():
    found = cases(frame(lambda d, M: 8.0 if d == "a" else 32.0))
    rules = {
        "oracle": lambda facts: 8.0 if facts["dataset"] == "a" else 32.0,
        "default": lambda facts: 1.0,
    }
    table = compare(scores(found, rules)).set_index("rule")
    assert table.loc["oracle", "captured"] == pytest.approx(1)
    assert table.loc["oracle", "regret"] == pytest.approx(0)
    assert table.loc["default", "captured"] == pytest.approx(0)
    assert table.loc["default", "regret"] == pytest.approx(
        50 * (2 * 0.8 - curve(1, 8.0) - curve(1, 32.0))
    )
    low, high = table.loc["default", ["regret_low", "regret_high"]]
    assert low < table.loc["default", "regret"] < high  # the two data sets differ


def test_wins_ties_and_losses_are_against_one():
    found = cases(frame(lambda d, M: {"a": 32.0, "b": 1.0, "c": 5.7}[d], datasets=("a", "b", "c")))
    row = compare(scores(found, {"32": lambda facts: 32.0})).iloc[0]
    assert (row["wins"], row["ties"], row["losses"]) == (1, 1, 1)
    assert row["worst"] == pytest.approx(100 * (curve(1, 1.0) - curve(32, 1.0)))


def test_a_rule_that_lacks_a_condition_is_refused_and_a_point_is_a_tie():
    table = scores(cases(frame(lambda d, M: 4.0)), {"one": lambda facts: 1.0, "two": lambda f: 2.0})
    table["gain_bn"] = 100 * (0.81 - 0.80)  # a little more than 1
    assert [*compare(table)["ties"]] == [2, 2]
    with pytest.raises(TstarError, match="'two' has 1 rows"):
        compare(table.iloc[:3])


def test_noise_is_what_one_half_of_the_seeds_loses_on_the_other():
    runs = frame(
        lambda d, M: 4.0, datasets=("a",), val=lambda T, seed: float((2 if seed else 8) == T)
    )
    lost, count = noise([c.curve() for c in cases(runs)])
    assert count == 1
    # 8 scored where 2 is the oracle and the other way round: the parabola is symmetric about 4.
    assert lost == pytest.approx(0, abs=1e-9)
    runs.loc[runs.seed == 1, "test_accuracy"] = [
        curve(T, 2.0) for T in runs.temperature[runs.seed == 1]
    ]
    expected = 50 * (curve(8, 4.0) - curve(2, 4.0) + curve(2, 2.0) - curve(8, 2.0))
    assert noise([c.curve() for c in cases(runs)])[0] == pytest.approx(expected)


def test_diverged_runs_count_as_chance_and_half_grids_are_left_out():
    runs = frame(lambda d, M: 4.0, datasets=("a",))
    hot = (runs.temperature == 0.25) & (runs.seed == 0)
    runs.loc[hot, ["status", "test_accuracy", "val_accuracy", "steps"]] = [
        "diverged", np.nan, np.nan, 17,
    ]  # fmt: skip
    case = cases(runs)[0].curve()
    assert case.test[0, 0] == pytest.approx(0.1)
    part = runs[~((runs.seed == 1) & (runs.temperature == 8))]
    assert [len(c.curve().matched().seeds) for c in cases(part)] == [1]


def test_missing_values_of_an_export_are_none():
    runs = frame(lambda d, M: 4.0, datasets=("a",)).convert_dtypes()
    runs["weights"] = pd.array([pd.NA] * len(runs), dtype="string")
    (case,) = cases(runs)
    assert case.facts["weights"] is None
    assert case.curve().best == 4


def test_rules_without_csg_fall_back_to_the_class_count():
    runs = frame(lambda d, M: 4.0, datasets=("a",), csg=0.0)
    table = scores(cases(runs)).set_index("rule")
    assert table.loc["ours-csgcn", "temperature"] == table.loc["ours-cn", "temperature"]
    assert table.loc["ours-cn", "temperature"] == tstar.temperature(64, 10, variant="cn")
