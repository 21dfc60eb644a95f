"""Fits for each environment, and with one data set left out."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from tests.lab.fitting.planted import THREE
from tests.synthetic import PAPER_TASKS, planted_runs, powers_of_two
from tstar import Coefficients, TstarError, temperature
from tstar.lab.fitting import coefficient_table, correction_table, fit, per_environment

LAST = ["Avg.", "S.D."]


def test_a_held_out_data_set_is_judged_by_a_fit_to_the_others(runs):
    table = correction_table(runs, variant="cn", restarts=1).set_index("optimization")
    for name, held in runs.groupby("dataset"):
        others = fit(runs[runs["dataset"] != name], "cn", restarts=1, bootstrap=0)
        wanted = []
        for (M, K), part in held.groupby(["num_features", "num_classes"]):
            T = temperature(M, K, coefficients=others.coefficients)
            curve = part.groupby("temperature")["val_accuracy"].mean()
            wanted.append(np.interp(np.log(T), np.log(curve.index), curve))
        assert table.loc["CO", name] == pytest.approx(100 * np.mean(wanted))


def test_per_environment_recovers_each_environment():
    one, two = Coefficients("one", 0.5, 2.0), Coefficients("two", 1.5, -3.0)
    fine = powers_of_two(16, largest=64)
    parts = []
    for norm, planted in (("batch", one), ("none", two)):
        for model in ("a", "b"):
            made = planted_runs(planted, grid=fine, widths=THREE, tasks=((2.0, 10),), seeds=2)
            parts.append(made.assign(norm=norm, model=model))
    table = per_environment(pd.concat(parts), restarts=1)
    assert table["model"].tolist() == ["a", "b", *LAST]
    assert table["dataset"].tolist() == ["task0", "task0", "", ""]
    assert table["alpha_bn"].tolist()[:4] == pytest.approx([0.5, 0.5, 0.5, 0.0], abs=0.02)
    assert table["beta_bn"].tolist()[:4] == pytest.approx([2.0, 2.0, 2.0, 0.0], abs=0.3)
    assert table["alpha"].tolist()[:4] == pytest.approx([1.5, 1.5, 1.5, 0.0], abs=0.05)
    own = table[:2]
    assert (own["alpha_bn_low"] <= own["alpha_bn"]).all()
    assert (own["alpha_bn"] <= own["alpha_bn_high"]).all()
    assert own["gain"].tolist() == pytest.approx((own["accuracy_bn"] - own["accuracy"]).tolist())


def test_one_seed_has_no_range():
    """Nothing is known of its noise: a range of what the noise cannot tell apart would be made up."""
    runs = planted_runs("base", tasks=PAPER_TASKS[:1], seeds=3, noise=0.01)
    one, three = (per_environment(r).iloc[0] for r in (runs.query("seed == 0"), runs))
    ends = ["alpha_bn_low", "alpha_bn_high", "beta_bn_low", "beta_bn_high"]
    assert one[ends].isna().all()
    assert three["alpha_bn_low"] < three["alpha_bn"] < three["alpha_bn_high"]


def test_one_data_set_cannot_be_cross_validated(small):
    table = correction_table(small.query("dataset == 'task0'"), variant="base", restarts=1)
    assert table["avg"].isna().tolist() == [True, False]
    assert table.attrs["notes"] == [
        "base CO: CO needs at least two data sets, got task0; add another."
    ]


def test_an_environment_with_one_width_is_named(small):
    mixed = small[(small["dataset"] != "task0") | (small["num_features"] == 64)]
    table = per_environment(mixed, restarts=1)
    assert "task0" not in set(table["dataset"])
    assert len(table) > 2
    (note,) = table.attrs["notes"]
    assert note.startswith("task0 · planted (norm=batch): alpha, beta cannot be separated")
    assert "num_features is 64" in note
    with pytest.raises(TstarError, match="No environment could be fitted"):
        per_environment(small.query("num_features == 64"))


def test_other_norms_are_no_environment(small):
    with pytest.raises(TstarError, match="No runs with norm 'none' or 'batch' found in 12 curves"):
        per_environment(small.assign(norm="layer"))


def side(norm, lr, less, **facts):
    """Runs of one environment; without BN it is easy at a rate of 0.1."""
    planted = Coefficients("one", 0.5, 2.0)
    runs = planted_runs(planted, grid=powers_of_two(4, 64), widths=THREE, tasks=((2.0, 10),))
    runs[["val_accuracy", "test_accuracy"]] -= less
    return runs.assign(norm=norm, lr=lr, **facts)


PLAIN, BN = side("none", 0.1, 0.01), side("batch", 0.1, 0.0)


@pytest.mark.parametrize("other", [side("batch", 0.001, 0.4), side("batch", 0.1, 0.4, seed=1)])
def test_bn_is_judged_in_the_conditions_and_seeds_of_both_sides(other):
    """Over all that was run BN would be 19 points worse; where both were run it is a point better."""
    row = per_environment(pd.concat([PLAIN, BN, other])).iloc[0]
    assert row["gain"] == pytest.approx(1.0, abs=0.05)
    assert row["conditions"] == len(THREE)
    assert row["accuracy_bn"] == pytest.approx(90, abs=0.1)


def test_averages_are_over_environments_that_have_both_sides():
    """A second model was run with BN alone, and is hard: it is shown, last, and moves no average."""
    alone = side("batch", 0.001, 0.4, model="another")
    table = per_environment(pd.concat([PLAIN, BN, alone]))
    assert table["model"].tolist() == ["planted", "another", *LAST]
    assert math.isnan(table["gain"][1])
    columns = ["alpha_bn", "accuracy", "accuracy_bn", "gain"]
    assert table.loc[2, columns].tolist() == table.loc[0, columns].tolist()
    assert table.loc[3, columns].isna().all()
    assert table.attrs["averaged"] == 1


def test_sides_that_share_no_condition_are_not_compared():
    table = per_environment(pd.concat([PLAIN, side("batch", 0.001, 0.4)]))
    assert math.isnan(table["accuracy"][0])
    assert math.isnan(table["gain"][0])
    assert table["accuracy_bn"][0] == pytest.approx(50, abs=0.1)
    assert any("not compared" in note for note in table.attrs["notes"])


def test_an_environment_that_is_not_identified_is_marked_and_both_averages_are_given():
    """Without BN model b is best at T = 1, where any α and β with T ≤ 1 fit."""
    grid = powers_of_two(4, largest=64)
    parts = []
    for model, plain in (("a", 1.5), ("b", None), ("c", 1.0)):
        for norm, alpha in (("batch", 0.5), ("none", plain)):
            planted = Coefficients("planted", alpha or 0.5, 2.0)
            runs = planted_runs(planted, grid=grid, widths=THREE, tasks=((2.0, 10),), seeds=2)
            runs = runs.assign(norm=norm, model=model)
            if alpha is None:
                falling = 0.9 - 0.05 * runs["temperature"].map(math.log)
                runs = runs.assign(val_accuracy=falling, test_accuracy=falling)
            parts.append(runs)
    table = per_environment(pd.concat(parts)).set_index("model")
    own = table.loc[["a", "b", "c"]]
    assert [*own["identified"]] == [True, False, True]
    assert own["identified_bn"].all()
    assert own.loc["b", "alpha"] * 8 + own.loc["b", "beta"] <= 1  # an estimate, with T = 1
    assert own.loc["b", "beta_low"] == -100
    assert own.loc["b", "accuracy"] == pytest.approx(90)
    assert (table.attrs["averaged"], table.attrs["identified"]) == (3, 2)
    for part, label in ((own, ""), (own.loc[["a", "c"]], " (identified)")):
        for side in ("alpha", "alpha_bn"):
            assert table.loc[f"Avg.{label}", side] == pytest.approx(part[side].mean())
            spread = table.loc[f"S.D.{label}"]
            assert spread[side] == pytest.approx(part[side].std(ddof=0))
            ends = spread[[f"{side}_low", f"{side}_high"]].to_numpy(float)
            n, want = len(part), len(part) * part[side].var(ddof=0)
            assert ends**2 * chi2(n - 1).ppf([0.975, 0.025]) == pytest.approx([want] * 2)
    assert table.loc["Avg.", "accuracy"] == pytest.approx(own["accuracy"].mean())


def test_tables_of_corrections_are_fits(small):
    wide = planted_runs("cn", grid=powers_of_two(2, largest=64), widths=(64, 256))
    table = correction_table(wide, restarts=1)
    assert [*table["correction"]] == ["base", "csg", "cn", "csgcn"] * 2
    assert [*table["optimization"]] == ["CO"] * 4 + ["GO"] * 4
    names = [f"task{i}" for i in range(6)]
    assert [*table.columns] == ["correction", "optimization", *names, "avg"]
    assert table["avg"].to_numpy() == pytest.approx(table[names].mean(axis=1).to_numpy())
    both = coefficient_table(wide, restarts=1).set_index("variant")
    direct = fit(wide, "base", bootstrap=0)
    assert both.loc["base", ["alpha", "beta"]].tolist() == pytest.approx(
        list(direct.values.values())
    )
    assert both.loc["base", "regret"] == pytest.approx(direct.regret)
    assert both.loc["base", ["gamma", "delta"]].isna().all()
    csg = correction_table(wide, restarts=1, variant="csg")
    wanted = table[table["correction"] == "csg"].reset_index(drop=True)
    pd.testing.assert_frame_equal(csg, wanted)
    with pytest.raises(TstarError, match="variant 'gsc'"):
        correction_table(wide, variant="gsc")
    ten = small.query("num_classes == 10")
    noted = coefficient_table(ten, restarts=1)
    assert noted.set_index("variant").loc["cn"].isna().all()
    assert any("cn: " in note and "num_classes is 10" in note for note in noted.attrs["notes"])
    with pytest.raises(TstarError, match="No correction could be fitted"):
        coefficient_table(small.query("num_features == 64"))
