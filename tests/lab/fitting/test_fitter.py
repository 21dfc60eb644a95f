"""The fit as theorems: planted coefficients come back, and nothing irrelevant matters."""

import numpy as np
import pandas as pd
import pytest

import tstar
from tests.lab.fitting.planted import ONCE, QUICK, WIDTHS, curve
from tests.synthetic import PAPER_TASKS, planted_runs, powers_of_two
from tstar import TstarError
from tstar.formula import get
from tstar.lab.fitting import fit
from tstar.lab.fitting.fitter import usable_curves

FINE = powers_of_two(16, largest=64.0)


@pytest.mark.parametrize("variant", ["base", "csg", "cn", "csgcn"])
def test_planted_coefficients_come_back_on_a_fine_grid(variant):
    planted = get(variant)
    result = fit(planted_runs(variant, grid=FINE, widths=WIDTHS), variant, **QUICK)
    assert result.solution.success
    assert result.coefficients.variant == variant
    for name, value in result.values.items():
        assert value == pytest.approx(getattr(planted, name), rel=0.06, abs=0.1), name
    wanted = [tstar.temperature(m, k, c, variant=variant) for c, k in PAPER_TASKS for m in WIDTHS]
    assert result.conditions["temperature"].to_numpy() == pytest.approx(wanted, rel=0.03)


def test_on_powers_of_two_they_are_biased_to_the_nodes_but_T_is_within_a_step():
    """Piecewise-linear curves peak at nodes: 0.7239·sqrt(M) − 4.706 comes back as 0.875·sqrt(M) − 6."""
    result = fit(planted_runs("base"), "base", **QUICK)
    assert [*result.values.values()] == pytest.approx([0.875, -6.0], abs=0.1)
    planted = np.array([tstar.temperature(m) for m in result.conditions["num_features"]])
    assert np.abs(np.log2(result.conditions["temperature"] / planted)).max() < 1


def test_the_fit_is_invariant_to_the_order_of_runs_and_reproducible():
    runs = planted_runs(seeds=2, noise=0.01, widths=(64, 256, 512))
    first = fit(runs, bootstrap=3, restarts=2)
    again = fit(runs.sample(frac=1, random_state=5).reset_index(drop=True), bootstrap=3, restarts=2)
    assert first.coefficients == again.coefficients
    assert first.intervals == again.intervals
    pd.testing.assert_frame_equal(first.conditions, again.conditions)


def test_metric_test_uses_test_accuracy_and_says_so():
    runs = planted_runs("base", widths=WIDTHS)
    spoilt = runs.assign(val_accuracy=0.5 + 0.001 * np.sin(np.arange(len(runs))))
    on_test = fit(spoilt, "base", metric="test", **QUICK)
    assert on_test.values == fit(runs, "base", metric="test", **QUICK).values
    assert on_test.values != fit(spoilt, "base", **QUICK).values
    assert "test accuracy chose the coefficients" in on_test.coefficients.provenance.source


def test_regret_is_to_the_best_grid_temperature():
    runs = planted_runs("cn", seeds=2, noise=0.01)
    result = fit(runs, "cn", **QUICK)
    means = runs.groupby(["dataset", "num_features", "temperature"])["val_accuracy"].mean()
    for row in result.conditions.to_dict("records"):
        curve = means.loc[row["dataset"], row["num_features"]]
        assert row["best_accuracy"] == pytest.approx(curve.max())
        assert row["best_temperature"] == curve.idxmax()
        at = np.interp(np.log(row["temperature"]), np.log(curve.index), curve)
        assert row["accuracy"] == pytest.approx(at)
        assert row["regret"] == pytest.approx(curve.max() - at, abs=1e-12)
        assert row["regret_T1"] == pytest.approx(curve.max() - curve.loc[1.0])
    assert result.regret == pytest.approx(result.conditions["regret"].mean())
    assert result.accuracy == pytest.approx(result.conditions["accuracy"].mean())
    assert result.regret <= result.baselines["the paper's cn"] <= result.baselines["BN, T = 1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"variant": "cng"}, "variant 'cng'.*'cn'"),
        ({"restarts": 0}, "restarts must be a whole number of at least 1"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"bootstrap": 1}, "bootstrap must be a whole number of at least 2"),
    ],
)
def test_bad_options(small, options, message):
    with pytest.raises(TstarError, match=message):
        fit(small, **(ONCE | options))


def test_what_can_carry_a_curve(small):
    good = curve([0.1, 0.2, 0.1], dataset="good")
    short = curve([0.1, 0.2], grid=(1.0, 2.0), diverged=2, dataset="short")
    dead = curve([0.1, 0.1, 0.1], diverged=3, dataset="dead")
    left_out = ("dataset=short (fewer than 3 temperatures)", "dataset=dead (all runs diverged)")
    assert usable_curves([good]) == ((good,), ())
    assert usable_curves([short, good, dead]) == ((good,), left_out)
    with pytest.raises(
        TstarError, match=r"3 temperatures .*\n.*short \(fewer.*\n.*dead \(all runs"
    ):
        usable_curves([short, dead])
    small.loc[small["dataset"] == "task4", "status"] = "diverged"
    result = fit(small, **ONCE)
    assert (len(result.conditions), len(result.left_out)) == (10, 2)


def test_a_careful_reader_is_told():
    runs = planted_runs("base", grid=[2, 4, 8], widths=(64, 128, 256), tasks=PAPER_TASKS[:1])
    low = runs.assign(val_accuracy=0.9 - 0.1 * np.log(runs["temperature"]))  # best below the grid
    text = "\n".join(fit(low, "base", **ONCE).flags)
    assert "the grid does not bracket the optimum in 3 of 3 conditions" in text
    assert "α sits on the bound of the search, [0, 10]" in text  # T does not grow with M
    assert "3 conditions are few for 2 coefficients" in text
    assert "restarts ended" not in text
    many = planted_runs("base", grid=[1, 2, 4, 8, 16], widths=(256, 4096))
    (flag,) = fit(many, "base", **ONCE).flags
    assert "num_features=4096" in flag
    assert "num_features=256" not in flag


def test_a_fit_has_its_baselines_and_says_what_it_was_fitted_to():
    runs = planted_runs("base", widths=(64, 256), tasks=PAPER_TASKS[:2])
    found = fit(pd.concat([runs, runs.assign(norm="none")]), "base", **ONCE)
    assert [*found.baselines] == ["BN, T = 1", "the paper's base"]
    assert found.coefficients.name == "fitted-base"
    training = found.coefficients.provenance.training
    assert (training["norm"], training["model"]) == ("batch", "planted")
    assert training["dataset"] == ["task0", "task1"]
    assert (found.runs, found.diverged, found.intervals) == (len(runs), 0, {})
