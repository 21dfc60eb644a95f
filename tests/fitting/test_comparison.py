"""Tables of fits: the paper's layout, and the comparison with ln T."""

import numpy as np
import pandas as pd
import pytest

from research.synthetic import PAPER_TASKS, planted_runs
from tests.fitting.planted import GRID
from tstar import TstarError
from tstar.fitting import (
    alternatives,
    coefficient_table,
    correction_table,
    cross_validate,
    fit,
)


@pytest.fixture(scope="module")
def few():
    return planted_runs(grid=GRID, widths=(64, 1024), tasks=PAPER_TASKS[1:5])


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


def test_data_sets_of_one_condition_stand_by_their_csg(few):
    """Each has a width of its own; names in another order than the csg, one csg unknown."""
    names = {"task0": "z", "task1": "y", "task2": "x", "task3": "w"}
    widths = {"task0": (64,), "task1": (1024,), "task2": (64,), "task3": (1024,)}
    rows = few[[m in widths[d] for d, m in zip(few["dataset"], few["num_features"], strict=True)]]
    rows = rows.assign(dataset=rows["dataset"].map(names))
    rows.loc[rows["dataset"] == "z", "csg"] = np.nan
    table = correction_table(rows, restarts=1)
    assert [*table.columns] == ["correction", "optimization", "y", "x", "w", "z", "avg"]
    base = table[table["correction"] == "base"]
    assert base[["y", "x", "w", "z"]].notna().all(axis=None)
    assert (base["avg"] <= 90.0 + 1e-6).all()  # no curve is higher than 0.9
    assert (base["avg"] > 85.0).all()
    assert table[table["correction"] == "csg"]["avg"].isna().all()  # z has no csg
    notes = table.attrs["notes"]
    assert [n.partition(":")[0] for n in notes][:2] == ["csg (CO)", "cn (CO)"]


def test_where_nothing_can_be_fitted_the_reasons_are_given(few):
    one = few[few["num_features"] == 64]
    for table in (correction_table, coefficient_table):
        with pytest.raises(TstarError, match=r"No correction could be fitted:\nbase.*told apart"):
            table(one, restarts=1)


def test_the_coefficient_table_is_the_global_fit(few):
    table = coefficient_table(few, restarts=1).set_index("variant")
    assert [*table.columns] == ["alpha", "beta", "gamma", "delta", "regret"]
    assert table["delta"].notna().tolist() == [False, False, True, True]
    direct = fit(few, "csg", restarts=1, bootstrap=0)
    assert table.loc["csg", ["alpha", "beta", "gamma"]].tolist() == pytest.approx(
        [*direct.values.values()]
    )
    assert table.loc["csg", "regret"] == pytest.approx(direct.regret)
    corrected = correction_table(few, restarts=1).set_index(["optimization", "correction"])
    best = 100 * few.groupby(["dataset", "num_features"])["val_accuracy"].max().mean()
    lost = 100 * table.loc["csg", "regret"]
    assert corrected.loc[("GO", "csg"), "avg"] == pytest.approx(best - lost)
