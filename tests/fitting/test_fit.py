"""The fit as theorems: planted coefficients come back, and nothing irrelevant matters."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import tstar
from research.synthetic import PAPER_TASKS, planted_runs, powers_of_two
from tstar import Coefficients
from tstar.curves import grids, lines
from tstar.fitting import Fit, fit
from tstar.fitting.model import problem
from tstar.formula.coefficients import get

FINE = powers_of_two(16, largest=64.0)
WIDTHS = (64, 128, 256, 512, 1024)
QUICK = {"bootstrap": 0, "restarts": 2}


@pytest.mark.parametrize(
    ("correction", "variant"), [("none", "base"), ("csg", "csg"), ("cn", "cn"), ("csgcn", "csgcn")]
)
def test_planted_coefficients_come_back_on_a_fine_grid(correction, variant):
    planted = get(variant)
    runs = planted_runs(variant, grid=FINE, widths=WIDTHS)
    result = fit(runs, correction, **QUICK)
    assert result.success
    assert result.coefficients.variant == variant
    for name, value in result.values.items():
        assert value == pytest.approx(getattr(planted, name), rel=0.06, abs=0.1), name
    wanted = [tstar.temperature(m, k, c, variant=variant) for c, k in PAPER_TASKS for m in WIDTHS]
    assert result.conditions["temperature"].to_numpy() == pytest.approx(wanted, rel=0.03)


def test_on_powers_of_two_they_are_biased_to_the_nodes_but_T_is_within_a_step():
    """Piecewise-linear curves peak at nodes: 0.7239·sqrt(M) − 4.706 comes back as 0.875·sqrt(M) − 6."""
    result = fit(planted_runs("base"), "none", **QUICK)
    assert result.coefficients.alpha == pytest.approx(0.875, abs=0.01)
    assert result.coefficients.beta == pytest.approx(-6.0, abs=0.1)
    planted = np.array([tstar.temperature(m) for m in result.conditions["num_features"]])
    assert np.abs(np.log2(result.conditions["temperature"] / planted)).max() < 1


@pytest.mark.parametrize(
    ("correction", "variant"),
    [("none", "base"), pytest.param("csgcn", "csgcn", marks=pytest.mark.slow)],
)
def test_planted_coefficients_lie_in_the_intervals_with_noise(correction, variant):
    """95 % intervals over three draws of the noise: at most one coefficient in eight outside."""
    planted, inside = get(variant), []
    for draw in range(3):
        runs = planted_runs(
            variant, grid=powers_of_two(8, 64), widths=WIDTHS, seeds=4, noise=0.02, seed=draw
        )
        result = fit(runs, correction, restarts=1, bootstrap=40)
        assert [interval.over for interval in result.intervals] == ["seeds", "conditions"]
        for interval in result.intervals:
            for name, (low, high) in interval.ranges.items():
                assert low < high
                inside.append(low <= getattr(planted, name) <= high)
    assert np.mean(inside) >= 7 / 8


def test_the_optimum_beats_every_neighbor_and_a_brute_force_search():
    runs = planted_runs("base", tasks=PAPER_TASKS[:2])
    result = fit(runs, "none", **QUICK)
    found = grids(runs, metric="val")
    best = math.inf
    for alpha in np.linspace(0, 2, 33):
        for beta in np.linspace(-20, 20, 41):
            regret = []
            for c in found:
                means = c.means("val")
                T = min(max(alpha * math.sqrt(c.facts["num_features"]) + beta, 1.0), 512.0)
                regret.append(max(means) - np.interp(np.log(T), np.log(c.temperatures), means))
            best = min(best, float(np.mean(regret)))
    assert result.regret <= best + 1e-9


def test_the_fit_is_invariant_to_the_order_of_runs_and_reproducible():
    runs = planted_runs(seeds=2, noise=0.01, widths=(64, 256, 512))
    first = fit(runs, bootstrap=3, restarts=2)
    again = fit(runs.sample(frac=1, random_state=5).reset_index(drop=True), bootstrap=3, restarts=2)
    assert first.coefficients == again.coefficients
    assert first.intervals == again.intervals
    pd.testing.assert_frame_equal(first.conditions, again.conditions)


def test_runs_of_a_condition_leave_other_curves_alone():
    runs = planted_runs(seeds=2, noise=0.02, widths=(64, 256))
    more = runs.query("dataset == 'task0'").assign(seed=9, val_accuracy=0.5, temperature=3.0)
    before = {str(c): c for c in grids(runs, metric="val")}
    after = {str(c): c for c in grids(pd.concat([runs, more]), metric="val")}
    changed = {name for name in before if before[name] != after[name]}
    assert {before[name].facts["dataset"] for name in changed} == {"task0"}
    T = np.geomspace(1, 512, 100)
    for name in set(before) - changed:
        old, new = lines([before[name]], "val"), lines([after[name]], "val")
        np.testing.assert_array_equal(old(T[:, None]), new(T[:, None]))


def test_metric_test_uses_test_accuracy_and_says_so():
    runs = planted_runs("base", widths=WIDTHS)
    spoilt = runs.assign(val_accuracy=0.5 + 0.001 * np.sin(np.arange(len(runs))))
    on_test = fit(spoilt, "none", metric="test", **QUICK)
    assert on_test.values == fit(runs, "none", metric="test", **QUICK).values
    assert on_test.values != fit(spoilt, "none", **QUICK).values
    assert "test accuracy chose the coefficients" in on_test.coefficients.provenance.source


def test_the_record_drops_into_the_formula(tmp_path):
    runs = planted_runs(widths=(64, 256, 512)).assign(optimizer="sgd", lr=0.1, epochs=3)
    runs.loc[runs["dataset"] == "task0", "lr"] = 0.05
    result = fit(runs, name="mine", **QUICK)
    assert isinstance(result, Fit)
    row = result.conditions.iloc[-1]
    facts = (int(row["num_features"]), int(row["num_classes"]), float(row["csg"]))
    assert tstar.temperature(*facts, coefficients=result.coefficients) == pytest.approx(
        row["temperature"]
    )
    result.save(tmp_path / "mine.json")
    assert Coefficients.load(tmp_path / "mine.json") == result.coefficients
    origin = result.coefficients.provenance
    assert origin.fitted.num_features == (64, 512)
    assert origin.fitted.csg == (1.53, 88.72)
    assert origin.training["optimizer"] == "sgd"
    assert origin.training["lr"] == [0.05, 0.1]
    for word in (
        "val accuracy",
        "mean over seeds",
        "linear interpolation in ln T",
        "restarts converged",
        "chance (1/K)",
    ):
        assert word in origin.source
    flags = tstar.explain(4096, 10, 5.0, coefficients=result.coefficients).flags
    assert [flag.quantity for flag in flags] == ["num_features"]


def test_printing_and_json_hold_the_evidence():
    result = fit(planted_runs(seeds=2, noise=0.01), bootstrap=3, restarts=2)
    text = str(result)
    for word in (
        "24 conditions",
        "mean regret",
        "restarts converged",
        "over seeds",
        "over conditions",
        "flattest",
    ):
        assert word in text
    data = json.loads(json.dumps(result.to_dict()))
    assert data["coefficients"]["alpha"] == result.coefficients.alpha
    assert len(data["conditions"]) == 24
    assert len(data["restarts"]) == 2


def test_regret_is_to_the_best_grid_temperature():
    runs = planted_runs("cn", seeds=2, noise=0.01)
    result = fit(runs, "cn", **QUICK)
    means = runs.groupby(["dataset", "num_features", "temperature"])["val_accuracy"].mean()
    for row in result.conditions.to_dict("records"):
        curve = means.loc[row["dataset"], row["num_features"]]
        assert row["best_accuracy"] == pytest.approx(curve.max())
        assert row["best_temperature"] == curve.idxmax()
        at = np.interp(np.log(row["temperature"]), np.log(curve.index), curve)
        assert row["regret"] == pytest.approx(curve.max() - at, abs=1e-12)
        assert row["regret_T1"] == pytest.approx(curve.max() - curve.loc[1.0])
    assert result.regret == pytest.approx(result.conditions["regret"].mean())
    assert result.regret <= result.baselines["the paper's cn"] <= result.baselines["BN, T = 1"]


def test_the_clip_and_the_bounds_belong_to_the_set():
    runs = planted_runs("base")
    result = fit(runs, "none", minimum=0.5, maximum=10.0, bounds={"beta": (0, 3)}, **QUICK)
    assert (result.coefficients.minimum, result.coefficients.maximum) == (0.5, 10.0)
    assert 0 <= result.coefficients.beta <= 3
    assert result.conditions["temperature"].max() <= 10.0
    assert any("bound of the search" in flag for flag in result.flags)


def test_interpolation_in_ln_T_is_another_curve():
    runs = planted_runs(Coefficients("planted", 0.5, 1.3), grid=[1, 8, 64], widths=(64, 512))
    found = grids(runs, metric="val")
    T = np.full(len(found), 3.0)
    linear, log = (lines(found, "val", interpolation=kind)(T) for kind in ("T", "lnT"))
    assert (log > linear).any()
    assert fit(runs, "none", interpolation="lnT", **QUICK).interpolation == "lnT"


def test_flat_directions_cost_less_than_the_tolerance():
    runs = planted_runs("base", widths=WIDTHS)
    result = fit(runs, "none", **QUICK)
    found = grids(runs, metric="val")
    task = problem(found, lines(found, "val"), "none")
    flattest, steepest = result.flat
    for flat in result.flat:
        for end in (flat.low, flat.high):
            assert task.loss(np.array(end)) <= result.regret + 1e-3 + 1e-12
    # α and β trade off: along the flattest line they move in opposite ways.
    alpha, beta = flattest.direction
    assert alpha * beta < 0
    span = [abs(f.high[1] - f.low[1]) for f in (flattest, steepest)]
    assert span[0] > span[1]


def test_a_grid_that_does_not_bracket_is_flagged_with_its_conditions():
    runs = planted_runs("base", grid=[1, 2, 4, 8, 16], widths=(256, 4096))
    result = fit(runs, "none", **QUICK)
    flag = next(flag for flag in result.flags if "does not bracket" in flag)
    assert "num_features=4096" in flag
    assert "num_features=256" not in flag
    assert result.conditions.set_index("num_features").loc[256, "bracketed"].all()


def test_an_interval_holds_its_estimate_on_peaks_and_plateaus():
    """The full simulation of coverage is research/intervals.py; its numbers are in results/fit."""
    from research.intervals import LEVELS, trial

    for kind in ("peaks", "plateaus"):
        rows = pd.DataFrame(trial(kind, seed=0))
        assert rows["holds_estimate"].all()
        for _, part in rows.groupby("coefficient"):
            widths = part.set_index("level")["width"]
            assert [*widths.index] == [*LEVELS]
            assert widths.is_monotonic_increasing
    plateau, peak = (
        pd.DataFrame(trial(kind, 0)).query("level == 0.95")["width"].max()
        for kind in ("plateaus", "peaks")
    )
    assert plateau > 2 * peak


def test_coefficients_that_cannot_be_told_apart_have_no_interval():
    """Accuracy does not depend on T: any coefficients are as good."""
    runs = planted_runs("base", seeds=2).assign(val_accuracy=0.8)
    result = fit(runs, "none", bootstrap=5, restarts=1)
    assert result.unidentified == ("alpha", "beta")
    text = str(result)
    assert "α and β cannot be told apart" in text
    assert text.count("no interval") == 2
    assert "over conditions" not in text
    assert result.to_dict()["unidentified"] == ["alpha", "beta"]
    for interval in result.intervals:
        for name, (low, high) in interval.ranges.items():
            assert low <= result.values[name] <= high


def test_a_fit_that_is_sure_names_no_valley():
    result = fit(planted_runs("base", widths=WIDTHS), "none", **QUICK)
    assert result.unidentified == ()
    assert "flat valley" not in str(result)
