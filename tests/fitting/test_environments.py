"""Fits for each environment, and with one data set left out."""

import math

import pandas as pd
import pytest

from research.synthetic import planted_runs, powers_of_two
from tests.fitting.planted import THREE, curve
from tstar import Coefficients, TstarError
from tstar.fitting import (
    cross_validate,
    fit,
    per_environment,
)
from tstar.fitting.environments import How, folds, judge, refit


def test_the_left_out_data_set_is_never_used(runs):
    """Poison it: its own fold's coefficients must not move, and every other fold's must."""
    poisoned = runs.copy()
    here = poisoned["dataset"] == "task4"
    poisoned.loc[here, "val_accuracy"] = 0.1 + 0.8 * (poisoned.loc[here, "temperature"] > 40)
    clean = cross_validate(runs, "cn", restarts=1).set_index("dataset")
    dirty = cross_validate(poisoned, "cn", restarts=1).set_index("dataset")
    names = ["alpha", "beta", "delta", "temperature"]
    assert clean.loc["task4", names].equals(dirty.loc["task4", names])
    assert dirty.loc["task4", "accuracy"] < clean.loc["task4", "accuracy"]
    moved = (clean[names] != dirty[names]).any(axis=1)
    assert moved.drop("task4").any()


def test_a_fold_is_a_fit_without_the_data_set(runs):
    folds = cross_validate(runs, "cn", restarts=2).set_index("dataset")
    direct = fit(runs.query("dataset != 'task5'"), "cn", restarts=2, bootstrap=0)
    assert folds.loc["task5", ["alpha", "beta", "delta"]].tolist() == pytest.approx(
        list(direct.values.values())
    )
    assert folds.loc["task5", "num_classes"] == 200
    assert folds.loc["task5", "conditions"] == 3


def test_per_environment_recovers_each_environment():
    one, two = Coefficients("one", 0.5, 2.0), Coefficients("two", 1.5, -3.0)
    fine = powers_of_two(16, largest=64)
    parts = []
    for norm, planted in (("batch", one), ("none", two)):
        for model in ("a", "b"):
            made = planted_runs(planted, grid=fine, widths=THREE, tasks=((2.0, 10),))
            parts.append(made.assign(norm=norm, model=model))
    table = per_environment(pd.concat(parts), restarts=1)
    assert table["model"].tolist() == ["a", "b", "Avg.", "S.D."]
    assert table["dataset"].tolist() == ["task0", "task0", "", ""]
    assert [*table.columns[:2]] == ["dataset", "model"]
    assert table["alpha_bn"].tolist() == pytest.approx([0.5, 0.5, 0.5, 0.0], abs=0.02)
    assert table["beta_bn"].tolist() == pytest.approx([2.0, 2.0, 2.0, 0.0], abs=0.3)
    assert table["alpha"].tolist() == pytest.approx([1.5, 1.5, 1.5, 0.0], abs=0.05)
    assert table["gain"].to_numpy() == pytest.approx(
        (table["accuracy_bn"] - table["accuracy"]).to_numpy(), abs=1e-9
    )


def test_the_deviation_divides_by_n():
    parts = []
    for model, alpha in (("a", 0.4), ("b", 0.8)):
        planted = Coefficients(model, alpha, 1.0)
        parts.append(
            planted_runs(
                planted, grid=powers_of_two(16, largest=64), widths=THREE, tasks=((2.0, 10),)
            ).assign(model=model)
        )
    table = per_environment(pd.concat(parts), restarts=1).set_index("model")
    values = table.loc[["a", "b"], "alpha_bn"]
    assert table.loc["S.D.", "alpha_bn"] == pytest.approx(abs(values["a"] - values["b"]) / 2)
    assert table["alpha"].isna().all()


def test_one_data_set_cannot_be_cross_validated(small):
    with pytest.raises(TstarError, match="at least two data sets, got task0"):
        cross_validate(small.query("dataset == 'task0'"), "none")
    with pytest.raises(TstarError, match=r"With 'task\d' left out: .*told apart"):
        cross_validate(small.query("dataset in ['task0', 'task4']"), "cn")


def test_an_environment_with_one_width_is_named(small):
    with pytest.raises(TstarError, match=r"task0 · planted \(norm=batch\): .*num_features is 64"):
        per_environment(small.query("num_features == 64"))
    mixed = small[(small["dataset"] != "task0") | (small["num_features"] == 64)]
    table = per_environment(mixed, restarts=1, skip=True)
    assert "task0" not in set(table["dataset"])
    assert len(table) > 2
    assert any("task0 · planted (norm=batch)" in note for note in table.attrs["notes"])
    with pytest.raises(TstarError, match="No environment could be fitted"):
        per_environment(small.query("num_features == 64"), skip=True)


def test_coefficients_are_judged_on_conditions_by_hand():
    """T = 6 and 11 on a tent in T that is 0.9 at 11 and falls by 0.04 for each 1."""
    held = [
        curve([0.5, 0.9, 0.5], num_features=16, dataset="a"),
        curve([0.5, 0.9, 0.5], num_features=81, dataset="a"),
    ]
    found = judge(held, "base", (1.0, 2.0), How(interpolation="T"))
    assert found == pytest.approx({"accuracy": 0.8, "regret": 0.1, "temperature": 8.5})
    theta, regret, accuracy = refit(held, "base", How(interpolation="T", restarts=1))
    assert (regret, accuracy) == pytest.approx((0.0, 0.9), abs=1e-6)
    assert len(theta) == 2
    power, *_ = refit(held, "base", How(interpolation="T", restarts=1, form="power"))
    assert 16 ** power[0] * math.exp(power[1]) == pytest.approx(11, rel=1e-3)


def test_a_fact_that_a_data_set_s_conditions_do_not_share_is_missing(small):
    small.loc[(small["dataset"] == "task1") & (small["num_features"] == 64), "csg"] = 5.0
    table = cross_validate(small, "base", restarts=1).set_index("dataset")
    assert pd.isna(table.loc["task1", "csg"])
    assert table.loc["task0", "csg"] == 1.53
    assert table["conditions"].tolist() == [2] * 6
    how = How(restarts=1)
    parts = {held[0].facts["dataset"]: held for held, _ in folds(how.usable(small)[0], "base", how)}
    assert [*parts] == [f"task{i}" for i in range(6)]
    assert all(len({c.facts["dataset"] for c in held}) == 1 for held in parts.values())


def test_other_norms_are_no_environment(small):
    with pytest.raises(TstarError, match="No runs with norm 'none' or 'batch' found in 12 curves"):
        per_environment(small.assign(norm="layer"))


def unbalanced():
    """Without BN at one rate alone, where training is easy. With BN at that rate (a point better) and at another."""
    made = planted_runs(
        Coefficients("one", 0.5, 2.0), grid=powers_of_two(4, largest=64), widths=THREE, tasks=((2.0, 10),)
    )  # fmt: skip
    accuracies = ["val_accuracy", "test_accuracy"]

    def side(norm, lr, less, seed=0):
        found = made.assign(norm=norm, lr=lr, seed=seed)
        found[accuracies] -= less
        return found

    return [side("none", 0.1, 0.01), side("batch", 0.1, 0.0), side("batch", 0.001, 0.4)], side


def test_bn_is_judged_where_both_sides_were_run():
    """Over all that was run BN would be 19 points worse; in the conditions of both it is a point better."""
    runs, _ = unbalanced()
    table = per_environment(pd.concat(runs), restarts=1)
    row = table.iloc[0]
    assert row["gain"] == pytest.approx(1.0, abs=0.05)
    assert row["conditions"] == len(THREE)
    assert row["accuracy_bn"] == pytest.approx(90, abs=0.1)


def test_the_seeds_of_a_gain_are_those_of_both_sides():
    runs, side = unbalanced()
    table = per_environment(pd.concat([*runs[:2], side("batch", 0.1, 0.4, seed=1)]), restarts=1)
    assert table.iloc[0]["gain"] == pytest.approx(1.0, abs=0.05)


def test_averages_are_over_environments_that_have_both_sides():
    """A second model was run with BN alone, and is hard: it is shown, last, and moves no average."""
    runs, _ = unbalanced()
    alone = runs[2].assign(model="another")
    table = per_environment(pd.concat([*runs[:2], alone]), restarts=1)
    assert table["model"].tolist() == ["planted", "another", "Avg.", "S.D."]
    assert math.isnan(table["gain"][1])
    columns = ["alpha_bn", "accuracy", "accuracy_bn", "gain"]
    assert table.loc[2, columns].tolist() == table.loc[0, columns].tolist()
    assert table.loc[3, columns].isna().all()
    assert table.attrs["averaged"] == 1


def test_sides_that_share_no_condition_are_not_compared():
    runs, _ = unbalanced()
    table = per_environment(pd.concat([runs[0], runs[2]]), restarts=1)
    assert math.isnan(table["accuracy"][0])
    assert math.isnan(table["gain"][0])
    assert table["accuracy_bn"][0] == pytest.approx(50, abs=0.1)
    assert any("not compared" in note for note in table.attrs["notes"])
