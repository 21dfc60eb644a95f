"""Per-environment, cross-validated and global fits, and the comparison with ln T."""

import numpy as np
import pandas as pd
import pytest

from research.synthetic import PAPER_TASKS, planted_runs, powers_of_two
from tstar import Coefficients
from tstar.fitting import (
    alternatives,
    coefficient_table,
    correction_table,
    cross_validate,
    fit,
    per_environment,
)

GRID = powers_of_two(2, largest=64)
WIDTHS = (64, 256, 1024)


@pytest.fixture(scope="module")
def runs():
    return planted_runs(grid=GRID, widths=WIDTHS)


@pytest.fixture(scope="module")
def few():
    return planted_runs(grid=GRID, widths=(64, 1024), tasks=PAPER_TASKS[1:5])


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


def test_correction_table_has_the_paper_s_layout(runs):
    table = correction_table(runs, restarts=1)
    assert table["correction"].tolist() == ["base", "csg", "cn", "csgcn"] * 2
    assert table["optimization"].tolist() == ["CO"] * 4 + ["GO"] * 4
    tasks = [f"task{i}" for i in range(6)]
    assert list(table.columns) == ["correction", "optimization", *tasks, "avg"]
    assert table["avg"].to_numpy() == pytest.approx(table[tasks].mean(axis=1).to_numpy())
    # With three conditions each, the global optimum is the best average that any set can have.
    co, go = table.iloc[:4]["avg"].to_numpy(), table.iloc[4:]["avg"].to_numpy()
    assert (go >= co - 1e-6).all()
    assert np.argmax(go) == 3


def test_what_cannot_be_fitted_is_missing_and_said(runs):
    ten = runs[runs["num_classes"] == 10]
    table = coefficient_table(ten, restarts=1).set_index("variant")
    assert table.loc["base", "alpha"] > 0
    assert pd.isna(table.loc["cn", "alpha"])
    notes = coefficient_table(ten, restarts=1).attrs["notes"]
    assert [note.partition(":")[0] for note in notes] == ["cn", "csgcn"]


def test_per_environment_recovers_each_environment():
    one, two = Coefficients("one", 0.5, 2.0), Coefficients("two", 1.5, -3.0)
    fine = powers_of_two(16, largest=64)
    parts = []
    for norm, planted in (("batch", one), ("none", two)):
        for model in ("a", "b"):
            made = planted_runs(planted, grid=fine, widths=WIDTHS, tasks=((2.0, 10),))
            parts.append(made.assign(norm=norm, model=model))
    table = per_environment(pd.concat(parts), restarts=1)
    assert table["model"].tolist() == ["a", "b", "Avg.", "S.D."]
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
                planted, grid=powers_of_two(16, largest=64), widths=WIDTHS, tasks=((2.0, 10),)
            ).assign(model=model)
        )
    table = per_environment(pd.concat(parts), restarts=1).set_index("model")
    values = table.loc[["a", "b"], "alpha_bn"]
    assert table.loc["S.D.", "alpha_bn"] == pytest.approx(abs(values["a"] - values["b"]) / 2)
    assert table["alpha"].isna().all()


def test_alternatives_are_judged_by_both_yardsticks(few):
    table = alternatives(few, "csg", restarts=1)
    assert len(table) == 4
    assert (table[["regret_in_T", "regret_in_lnT"]] >= 0).to_numpy().all()
    own = cross_validate(few, "csg", restarts=1)
    assert table.loc[1, "regret_in_lnT"] == pytest.approx(own["regret"].mean())


def test_a_planted_power_law_is_found_by_the_power_law():
    """The comparison can come out either way."""
    rows = planted_runs(grid=GRID, widths=(64, 1024), tasks=PAPER_TASKS[1:5])
    peak = 0.3 * rows["num_features"] ** 0.6 * rows["csg"] ** -0.1
    rows["val_accuracy"] = 0.9 - 0.04 * np.log(rows["temperature"] / peak) ** 2
    table = alternatives(rows, "csg", restarts=1).set_index("fit")["regret_in_lnT"]
    assert table["power law, linear in ln T"] < table["sum, linear in ln T"]
