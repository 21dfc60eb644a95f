"""Tables of fits: the paper's layout, and the comparison with ln T."""

import numpy as np
import pandas as pd
import pytest

from research.synthetic import PAPER_TASKS, planted_runs
from tests.fitting.planted import GRID
from tstar.fitting import (
    alternatives,
    coefficient_table,
    correction_table,
    cross_validate,
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
