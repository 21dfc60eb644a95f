"""Runs as they are read, and missing values as every reader brings them."""

import numpy as np
import pandas as pd
import pytest

from tests.synthetic import planted_runs
from tstar.errors import TstarError
from tstar.lab.curves import conditions
from tstar.lab.curves.reading import ordinary, plain_value, read, results


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        *[(missing, None) for missing in (None, float("nan"), pd.NA, pd.NaT)],
        *[(np.int64(3), 3), (np.float32(0.5), 0.5), ("x", "x"), (0, 0)],
    ],
)
def test_a_value_is_python_s_own_and_a_missing_one_none(value, plain):
    assert plain_value(value) == plain
    assert type(plain_value(value)) is type(plain)


def test_some_runs_of_a_store_are_chosen(tmp_path):
    path = tmp_path / "runs.csv"
    runs = planted_runs(widths=(64,))
    runs.to_csv(path, index=False)
    assert len(read(path)) == len(runs)
    found = read(path, where="dataset == 'task0' and temperature > 10")
    assert len(found) == 6  # of 1, 2, … 512
    with pytest.raises(TstarError, match=r"No runs of .*runs\.csv' were chosen"):
        read(path, where="dataset == 'c'")


def test_what_was_read_stays_as_it_is():
    runs = planted_runs(widths=(64,))
    assert read(runs) is runs
    known = conditions(runs)
    assert read(known) is known
    for wrong in (3, {"a": 1}):
        with pytest.raises(TstarError, match="data frame or the path of a store"):
            read(wrong)
    for wrong in ("none.db", "none.csv"):
        with pytest.raises(TstarError, match=rf"{wrong}' .*(does not exist|No such file)"):
            read(wrong)


def test_results_are_finished_runs_with_what_older_stores_lack():
    runs = pd.DataFrame(
        {
            "dataset": ["a"] * 5,
            "status": ["done", "diverged", "failed", "running", "done"],
            "role": ["run", None, "run", "run", "teacher"],
            "method": [None, "kd", None, None, None],
            "temperature": [1.0, None, 2.0, 2.0, 3.0],
            "elsewhere": 1,
        }
    )
    found = results(runs)
    assert [*found.index] == [0, 1]
    assert found["method"].tolist() == ["fixed", "kd"]
    assert "elsewhere" not in found
    with pytest.raises(TstarError, match=r"temperature must be positive .*, got -1"):
        results(pd.DataFrame({"dataset": ["a", "a"], "temperature": [1.0, -1.0]}))
    with pytest.raises(TstarError, match="column 'dataset', got x, y"):
        results(pd.DataFrame({"x": [1], "y": [2]}))


def test_columns_get_ordinary_types():
    runs = pd.DataFrame(
        {
            "seed": pd.array([1, None], dtype="Int64"),
            "steps": pd.array([1, 2], dtype="Int64"),
            "lr": ["0.1", "1e-2"],
            "dataset": pd.array(["a", None], dtype="string"),
        },
        index=[5, 9],
    )
    found = ordinary(runs)
    assert found["seed"].tolist() == pytest.approx([1.0, np.nan], nan_ok=True)
    assert (found["steps"].dtype, found["lr"].dtype) == (np.int64, np.float64)
    assert found["lr"].tolist() == [0.1, 0.01]
    assert found["dataset"].tolist() == ["a", None]
    assert [*found.index] == [5, 9]
    with pytest.raises(TstarError, match="lr must be a number in every run"):
        ordinary(pd.DataFrame({"lr": ["fast"]}))


def lengths(*rows):
    """(epochs, steps) after reading, of rows (status, epochs, steps, spec)."""
    runs = pd.DataFrame(rows, columns=["status", "epochs", "steps", "spec"]).assign(dataset="a")
    return results(runs)[["epochs", "steps"]].to_numpy().tolist()


def test_a_diverged_run_gets_the_length_of_the_finished_ones():
    early = ("diverged", 1, 3, None)
    assert lengths(("done", 5, 50, None), early) == [[5, 50], [5, 50]]
    assert np.isnan(lengths(early)).all()  # nobody knows how long it would have been


@pytest.mark.parametrize(
    ("spec", "length"),
    [
        ('{"epochs": 7, "steps": null}', [7, 70]),
        ('{"epochs": 7, "steps": 50}', [5, 50]),  # steps override epochs
        ('{"epochs": 9}', [1, 3]),  # of that length there is none
        ("no json", [1, 3]),
        (None, [1, 3]),  # nothing says which: it stays
    ],
)
def test_of_several_lengths_the_spec_tells(spec, length):
    done = [("done", 5, 50, None), ("done", 7, 70, None)]
    assert lengths(*done, ("diverged", 1, 3, spec))[2] == length
