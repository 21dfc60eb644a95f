"""What a fit cannot use is named, with the conditions listed."""

import numpy as np
import pytest

from research.synthetic import planted_runs
from tstar import TstarError
from tstar.fitting import cross_validate, fit, per_environment

QUICK = {"bootstrap": 0, "restarts": 1}


@pytest.fixture
def runs():
    return planted_runs(grid=[1, 2, 4, 8, 16], widths=(64, 256))


def test_too_few_temperatures(runs):
    few = runs[(runs["dataset"] != "task1") | (runs["temperature"] < 3)]
    with pytest.raises(
        TstarError, match=r"At least 3 temperatures.*2 of 12:\n.*task1.*\n.*task1.*\n.*skip=True"
    ):
        fit(few, **QUICK)
    result = fit(few, skip=True, **QUICK)
    assert len(result.conditions) == 10
    assert len(result.left_out) == 2
    assert all("task1" in text for text in result.left_out)


@pytest.mark.parametrize(
    ("correction", "column"), [("csg", "csg"), ("cn", "num_classes"), ("none", "num_features")]
)
def test_missing_quantities_are_named_where_needed(runs, correction, column):
    spoilt = runs.astype({column: float})
    spoilt.loc[spoilt["dataset"] == "task2", column] = np.nan
    with pytest.raises(
        TstarError, match=rf"{column} must be known.*missing in \d+ of 1\d.*\n.*task2"
    ):
        fit(spoilt, correction, **QUICK)
    if column != "num_features":
        assert fit(spoilt, "none", **QUICK).success


def test_a_csg_of_zero_is_named(runs):
    runs.loc[runs["dataset"] == "task3", "csg"] = 0.0
    with pytest.raises(TstarError, match=r"csg > 0 must hold.*\n.*task3"):
        fit(runs, "csg", **QUICK)


def test_all_runs_diverged(runs):
    runs.loc[runs["dataset"] == "task4", "status"] = "diverged"
    with pytest.raises(TstarError, match=r"all diverged in 2 of 12:\n.*task4"):
        fit(runs, **QUICK)
    assert len(fit(runs, skip=True, **QUICK).conditions) == 10
    for skip in (False, True):
        with pytest.raises(TstarError, match="diverged"):
            fit(runs.assign(status="diverged"), skip=skip, **QUICK)


def test_coefficients_that_cannot_be_told_apart(runs):
    with pytest.raises(TstarError, match=r"num_classes is 10 in all; add runs"):
        fit(runs.query("num_classes == 10"), "cn", **QUICK)
    with pytest.raises(TstarError, match=r"num_features is 64 in all"):
        fit(runs.query("num_features == 64"), "none", **QUICK)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"correction": "cng"}, "variant 'cng'.*'cn'"),
        ({"bounds": {"epsilon": (0, 1)}}, "coefficient in bounds 'epsilon'"),
        ({"bounds": {"alpha": (1, 1)}}, "low < high must hold for the bounds of alpha"),
        ({"bounds": {"alpha": 3}}, r"must be \(low, high\)"),
        ({"minimum": 0}, "0 < minimum <= maximum"),
        ({"restarts": 0}, "restarts must be at least 1"),
        ({"bootstrap": 1}, "at least 2 replicates"),
    ],
)
def test_bad_options(runs, options, message):
    with pytest.raises(TstarError, match=message):
        fit(runs, **(QUICK | options))


def test_one_data_set_cannot_be_cross_validated(runs):
    with pytest.raises(TstarError, match="at least two data sets, got task0"):
        cross_validate(runs.query("dataset == 'task0'"), "none")
    with pytest.raises(TstarError, match=r"With 'task\d' left out: .*told apart"):
        cross_validate(runs.query("dataset in ['task0', 'task4']"), "cn")


def test_an_environment_with_one_width_is_named(runs):
    with pytest.raises(TstarError, match=r"task0 · planted \(norm=batch\): .*num_features is 64"):
        per_environment(runs.query("num_features == 64"))
