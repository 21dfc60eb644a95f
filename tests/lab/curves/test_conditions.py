"""Grouping runs: what counts, and what is said of what does not; regret by hand."""

import numpy as np
import pandas as pd
import pytest

from tests.synthetic import planted_runs
from tstar import TstarError
from tstar.lab.curves import Condition, Curve, conditions, grids, read
from tstar.lab.curves.conditions import listed, order
from tstar.lab.sweep.store import Store

TASKS = ((1.5, 10), (20.0, 100))


@pytest.fixture
def runs():
    return planted_runs(grid=[1.0, 4.0, 16.0], tasks=TASKS, widths=(64, 256), seeds=2, noise=0.01)


def content(runs):
    """What the curves of runs hold, as values that can be compared."""
    return [
        (
            *(c.facts[name] for name in ("dataset", "num_features")),
            *(
                c.seeds,
                c.temperatures.tolist(),
                c.val.round(12).tolist(),
                c.test.round(12).tolist(),
            ),
        )
        for c in grids(runs)
    ]


def test_a_condition_is_everything_but_temperature_and_seed(runs):
    found = grids(runs)
    assert len(found) == 4
    assert all(c.temperatures.tolist() == [1.0, 4.0, 16.0] for c in found)
    assert all(c.runs == 6 for c in found)
    other = runs.assign(lr=0.1)
    assert len(grids(pd.concat([other, other.assign(lr=0.01)]))) == 8


@pytest.mark.parametrize("kind", ["db", "csv", "parquet"])
def test_the_store_s_form_does_not_matter(runs, tmp_path, kind):
    path = tmp_path / f"runs.{kind}"
    runs = runs.assign(key=[f"{i:x}" for i in range(len(runs))])
    if kind == "db":
        with Store(path, create=True) as store:
            for row in runs.assign(status="done", attempts=1).to_dict("records"):
                store.insert(row)
    elif kind == "csv":
        runs.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow")
        runs.to_parquet(path)
    assert content(read(path)) == content(read(str(path))) == content(runs)


def test_order_status_and_the_number_of_seeds_leave_no_trace(runs):
    before = runs.copy(deep=True)
    found = content(runs)
    pd.testing.assert_frame_equal(runs, before)
    for same in (runs.sample(frac=1, random_state=3), runs.drop(columns=["status", "seed"])):
        assert content(same) == found


def test_a_diverged_run_is_a_result_at_chance(runs):
    index = runs.index[(runs["temperature"] == 1.0) & (runs["num_classes"] == 100)]
    runs.loc[index, "status"] = "diverged"
    runs.loc[index, "val_accuracy"] = np.nan
    found = [c for c in grids(runs) if c.facts["num_classes"] == 100]
    assert all(c.by_seed(1.0, "val") == {0: 0.01, 1: 0.01} for c in found)
    assert all(c.diverged == 2 for c in found)
    # Whatever was recorded.
    assert content(runs.fillna({"val_accuracy": 0.77})) == content(runs)


@pytest.mark.parametrize(
    "change",
    [
        {"status": "failed"},
        {"status": "running"},
        {"role": "teacher"},
        {"norm": "none"},
        {"method": "kd"},
    ],
)
def test_failed_running_and_teacher_runs_are_no_results(runs, change):
    extra = runs.assign(val_accuracy=0.0, **change)
    assert content(pd.concat([runs, extra])) == content(runs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"val_accuracy": 71.5},
            r"fraction from 0 to 1, got 71.5; divide percentages by 100.*\n.*dataset=task0",
        ),
        ({"val_accuracy": -0.1}, "got -0.1"),
        ({"temperature": 0.0}, "temperature must be positive and finite in every run, got 0"),
        ({"temperature": np.inf}, "temperature must be positive and finite in every run, got inf"),
        ({"num_features": -3}, "num_features must be positive"),
        ({"temperature": None}, "No finished runs at fixed temperatures"),
        ({"num_classes": None, "status": "diverged"}, "num_classes must be known"),
    ],
)
def test_bad_values_are_named(runs, change, message):
    with pytest.raises(TstarError, match=message):
        grids(runs.assign(**change))


@pytest.mark.parametrize("change", [{"val_accuracy": np.nan}, {"val_accuracy": None}])
def test_what_is_missing_is_named(runs, change):
    curve = grids(runs.assign(**change))[0]
    with pytest.raises(TstarError, match="val_accuracy is missing in a finished run"):
        curve.values("val")
    with pytest.raises(TstarError, match="metric 'loss'"):
        curve.values("loss")


def curve(values, grid=(1.0, 4.0, 16.0), test=None, **facts):
    """A curve by hand: one row a seed, which has no run where the value is missing."""
    values = np.array(values, float)
    test = values / 2 if test is None else np.array(test, float)
    ran = ~np.isnan(test)
    return Curve(facts, np.array(grid), tuple(range(0, 7 * len(values), 7)), values, test, ran, 1)


BY_HAND = curve([[0.1, 0.3, 0.5], [0.2, 0.6, np.nan]], lr=0.1)  # seed 7 was not run at 16


@pytest.mark.parametrize(
    ("T", "wanted"),
    [
        (2.0, {0: 0.2, 7: 0.4}),  # half way in ln T
        (8.0, {0: 0.4}),  # seed 7 ends at 4
        (4.0, {0: 0.3, 7: 0.6}),
        (4.0 * (1 + 1e-15), {0: 0.3, 7: 0.6}),
        (0.5, {0: 0.1, 7: 0.2}),  # constant outside
        (64.0, {0: 0.5}),
    ],
)
def test_between_grid_points_a_seed_s_accuracy_is_linear_in_ln_t(T, wanted):
    assert BY_HAND.at_by_seed(T, "val") == pytest.approx(wanted)
    half = {seed: value / 2 for seed, value in wanted.items()}
    assert BY_HAND.at_by_seed(T) == pytest.approx(half)  # the test accuracy by default


def test_the_mean_at_a_temperature_is_over_the_seeds_that_were_run():
    assert BY_HAND.means("val") == pytest.approx([0.15, 0.45, 0.5])
    assert BY_HAND.at(2.0, "val") == pytest.approx(0.3)
    assert BY_HAND.at(64.0, "val") == pytest.approx(0.5)
    assert BY_HAND.by_seed(16.0, "val") == {0: 0.5}
    assert BY_HAND.by_seed(8.0, "val") == {}
    assert BY_HAND.runs == 5


def test_some_seeds_of_a_curve():
    alone = BY_HAND.only([7])
    assert alone.temperatures.tolist() == [1.0, 4.0]
    assert (alone.seeds, alone.val.tolist(), alone.test.tolist()) == (
        (7,),
        [[0.2, 0.6]],
        [[0.1, 0.3]],
    )
    assert (alone.runs, alone.facts) == (2, {"lr": 0.1})
    assert BY_HAND.matched().seeds == (0,)  # the one that has the whole grid
    none_whole = curve([[0.1, np.nan], [np.nan, 0.2]], (1.0, 2.0))
    assert none_whole.matched() is none_whole


def test_the_oracle_chooses_by_validation_and_takes_the_lowest_of_equals():
    assert curve([[0.2, 0.5, 0.5]], test=[[0.9, 0.1, 0.1]]).best == 4.0
    # Two seeds have 42 of 288 right at each T, but the means round apart.
    counts = np.array([[1, 2, 5], [41, 40, 37]]) / 144
    assert counts.mean(axis=0)[0] < counts.mean(axis=0)[1]
    assert curve(counts).best == 1.0
    # One sample of a hundred million is a difference.
    assert curve([[0.5, 0.5 + 1e-8]], (1.0, 2.0)).best == 2.0
    unknown = curve([[np.nan] * 3], test=[[0.9, 0.1, 0.1]])
    assert (unknown.chosen_on, unknown.best) == ("test", 1.0)


def test_the_untouched_model():
    plain = curve([[0.4, 1.0], [0.6, 1.0]], (1.0, 2.0), norm="none")
    named = {"default": {7: {"val": 0.0, "test": 0.0}, 8: {"val": 0.6, "test": 0.8}}}
    both = Condition({}, (plain,), named)
    assert both.plain_by_seed() == pytest.approx({0: 0.2, 7: 0.3, 8: 0.8})  # a curve goes first
    assert Condition({}, (), named).plain_by_seed("val") == {7: 0.0, 8: 0.6}
    assert Condition({}, (), {}).plain_by_seed() == {}


def test_a_list_for_a_message_ends_with_how_many_more():
    curves = [curve([[0.5] * 3], dataset=f"set{i}", lr=0.1, csg=None, epochs=3) for i in range(9)]
    assert listed(curves[:8]) == "\n".join(f"  dataset=set{i}, lr=0.1" for i in range(8))
    assert listed(curves, 3).splitlines()[2:] == ["  dataset=set2, lr=0.1", "  … and 6 more"]


def test_conditions_are_ordered_by_number_then_text_then_what_is_missing():
    sizes = [99, 9.5, 10, "b", None]
    facts = [{"dataset": "A" if size == 99 else "a", "size": size} for size in sizes]
    mixed = [facts[i] for i in (3, 0, 4, 2, 1)]
    assert [f["size"] for f in sorted(mixed, key=order)] == sizes


def test_a_method_without_a_temperature_is_no_curve(runs):
    named = runs[runs["temperature"] == 1.0].assign(
        temperature=np.nan, method="insert-ln", csg=np.nan
    )
    for found in conditions(pd.concat([named, runs])):
        rows = named[
            (named["dataset"] == found.facts["dataset"])
            & (named["num_features"] == found.facts["num_features"])
        ].set_index("seed")
        assert len(found.curves) == 1
        assert found.facts["csg"] in (1.5, 20.0)  # the first that is known
        scores = rows[["val_accuracy", "test_accuracy"]].set_axis(["val", "test"], axis=1)
        assert found.methods == {"insert-ln": scores.to_dict("index")}


def test_curves_of_any_norm_and_of_conditions_read_before(runs):
    mixed = pd.concat([runs, runs.assign(norm="none")])
    assert len(grids(mixed)) == 4
    assert len(grids(mixed, norm=None)) == 8
    assert content(conditions(mixed)) == content(mixed)
    with pytest.raises(TstarError, match=r"norm='layer' in 4 conditions"):
        grids(conditions(mixed), norm="layer")
    with pytest.raises(TstarError, match="No finished runs found among 12"):
        conditions(runs.assign(status="failed").head(12))


def test_several_runs_of_a_seed_at_one_temperature_are_one_by_their_mean(runs):
    both = pd.concat([runs, runs.assign(val_accuracy=runs["val_accuracy"] / 2)])
    for found, once in zip(grids(both), grids(runs), strict=True):
        assert found.seeds == once.seeds
        np.testing.assert_allclose(found.val, 0.75 * once.val)


# -- what belongs to a condition, by hand ----------------------------------------------------------
GRID = (1.0, 4.0, 16.0)


def run(T, seed, test, norm="batch", val=None, **facts):
    base = {"dataset": "a", "model": "m", "num_features": 64, "num_classes": 10, "lr": 0.1}
    base |= {"method": "fixed", "norm": norm, "temperature": T, "seed": seed, "status": "done"}
    return base | {"test_accuracy": test, "val_accuracy": test if val is None else val} | facts


def one(rows):
    (condition,) = conditions(pd.DataFrame(rows))
    return condition


def test_norm_method_and_t_are_not_of_the_condition():
    rows = [run(T, 0, 0.5) for T in GRID] + [run(1.0, 0, 0.4, "none")]
    rows += [run(None, 0, 0.3, "none", method="insert-ln")]
    condition = one(rows)
    assert condition.plain_by_seed() == {0: 0.4}
    assert condition.curve().by_seed(1.0) == {0: 0.5}
    assert condition.methods["insert-ln"] == {0: {"val": 0.3, "test": 0.3}}
    assert condition.curve("none").temperatures.tolist() == [1.0]


@pytest.mark.parametrize(
    "fact",
    ["lr", "head_lr", "weight_decay", "label_noise", "samples", "depth", "trunk_features"],
)
def test_every_fact_of_the_training_is_of_the_condition(fact):
    rows = [run(T, 0, 0.5, **{fact: value}) for T in GRID for value in (0.25, 0.5)]
    assert len(conditions(pd.DataFrame(rows))) == 2


def test_a_later_column_that_is_empty_in_old_runs_does_not_split_them():
    rows = [run(T, 0, 0.5) for T in GRID] + [run(T, 1, 0.7, label_noise=0.0) for T in GRID]
    assert one(rows).curve().seeds == (0, 1)


def test_regret_by_hand():
    """Validation chose 16, the test accuracy there is 0.7; 8 is half way from 4 to 16 in ln T."""
    rows = [
        run(T, 0, a, val=v) for T, a, v in zip(GRID, (0.5, 0.8, 0.7), (0.1, 0.2, 0.3), strict=True)
    ]
    curve = one(rows).curve()
    assert curve.best == 16.0
    assert curve.regret(8.0) == pytest.approx(100 * (0.7 - 0.75))
    assert curve.regret(8.0, "val") == pytest.approx(100 * (0.3 - 0.25))
    # Seed 1 has half a grid: it moves nothing.
    both = one([*rows, run(4.0, 1, 0.2)]).curve()
    assert both.seeds == (0, 1)
    assert both.regret(4.0) == curve.regret(4.0)
