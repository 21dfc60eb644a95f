"""Reading stores and grouping runs: what counts, and what is said of what does not."""

import numpy as np
import pandas as pd
import pytest

from tests.synthetic import planted_runs
from tstar import TstarError
from tstar.lab.curves import Condition, Curve, conditions, grids, read
from tstar.lab.curves.conditions import listed, order, without
from tstar.lab.sweep.store import Store

TASKS = ((1.5, 10), (20.0, 100))


@pytest.fixture
def runs():
    return planted_runs(grid=[1.0, 4.0, 16.0], tasks=TASKS, widths=(64, 256), seeds=2, noise=0.01)


def grouped(runs, **options):
    return grids(runs, **({"metric": "val"} | options))


def content(found):
    """What curves hold, as values that can be compared."""
    return [
        (
            dict(c.facts),
            c.seeds,
            c.temperatures.tolist(),
            *(x.round(12).tolist() for x in (c.val, c.test)),
        )
        for c in found
    ]


def test_a_condition_is_everything_but_temperature_and_seed(runs):
    found = grouped(runs)
    assert len(found) == 4
    assert all(c.temperatures.tolist() == [1.0, 4.0, 16.0] for c in found)
    assert all(c.runs == 6 for c in found)
    other = runs.assign(lr=0.1)
    both = pd.concat([other, other.assign(lr=0.01)])
    assert len(grouped(both)) == 8


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
    assert described(read(path)) == described(read(str(path))) == described(runs)


def described(runs):
    """Curves with the facts that the runs were made with; a store knows more columns than a frame."""
    return [
        (
            c.facts["dataset"],
            c.facts["num_features"],
            c.temperatures.tolist(),
            c.means("test").tolist(),
        )
        for c in grouped(runs)
    ]


def test_the_order_of_runs_leaves_no_trace(runs):
    shuffled = runs.sample(frac=1, random_state=3)
    assert content(grouped(shuffled)) == content(grouped(runs))


def test_a_diverged_run_is_a_result_at_chance(runs):
    index = runs.index[(runs["temperature"] == 1.0) & (runs["num_classes"] == 100)]
    runs.loc[index, "status"] = "diverged"
    runs.loc[index, "val_accuracy"] = np.nan
    found = [c for c in grouped(runs) if c.facts["num_classes"] == 100]
    assert all([*c.by_seed(c.temperatures[0], "val").values()] == [0.01, 0.01] for c in found)
    assert all(c.diverged == 2 for c in found)
    # Whatever was recorded.
    assert content(grouped(runs.fillna({"val_accuracy": 0.77}))) == content(grouped(runs))


def test_failed_running_and_teacher_runs_are_no_results(runs):
    extra = runs.assign(val_accuracy=0.0)
    for change in (
        {"status": "failed"},
        {"status": "running"},
        {"role": "teacher"},
        {"norm": "none"},
        {"method": "kd"},
    ):
        found = grouped(pd.concat([runs, extra.assign(**change)]))
        assert [c.val.tolist() for c in found] == [c.val.tolist() for c in grouped(runs)], change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"val_accuracy": 71.5},
            r"fraction from 0 to 1, got 71.5; divide percentages by 100.*\n.*dataset=task0",
        ),
        ({"val_accuracy": -0.1}, "got -0.1"),
        ({"val_accuracy": np.nan}, "val_accuracy is missing in a finished run"),
        ({"temperature": 0.0}, "temperature > 0 must hold"),
        ({"num_classes": None, "status": "diverged"}, "num_classes must be known"),
    ],
)
def test_bad_values_are_named(runs, change, message):
    with pytest.raises(TstarError, match=message):
        grouped(runs.assign(**change))


def test_what_is_missing_is_named(runs):
    with pytest.raises(TstarError, match="val_accuracy is missing"):
        grouped(runs.drop(columns="val_accuracy"))
    with pytest.raises(TstarError, match="No finished runs at fixed temperatures"):
        grouped(runs.drop(columns="temperature"))
    with pytest.raises(TstarError, match="metric 'loss'"):
        grouped(runs, metric="loss")


def test_reading_leaves_the_frame_alone_and_needs_no_status(runs):
    before = runs.copy(deep=True)
    found = grouped(runs)
    pd.testing.assert_frame_equal(runs, before)
    assert content(grouped(runs.drop(columns="status"))) == content(found)


def test_a_condition_gives_the_curve_of_a_norm_and_a_backbone():
    def curve(**facts):
        grid, ran = np.array([1.0, 2.0]), np.ones((1, 2), dtype=bool)
        return Curve(facts, grid, (0,), np.array([[0.1, 0.2]]), np.array([[0.1, 0.2]]), ran)

    batch, none, matched = curve(norm="batch"), curve(norm="none"), curve(backbone="matched")
    other = curve(method="learned-temperature")
    condition = Condition({}, (other, none, batch, matched), {})
    assert condition.curve() is batch
    assert condition.curve("none") is none
    assert condition.curve("batch", "matched") is matched
    assert condition.curve("layer") is None


def by_hand(**facts):
    """Two seeds on three temperatures; seed 7 was not run at 16."""
    values = np.array([[0.1, 0.3, 0.5], [0.2, 0.6, np.nan]])
    grid = np.array([1.0, 4.0, 16.0])
    return Curve(facts, grid, (0, 7), values, values / 2, ~np.isnan(values), 1)


def test_between_grid_points_a_seed_s_accuracy_is_linear_in_ln_t():
    curve = by_hand()
    assert curve.at_by_seed(2.0, "val") == pytest.approx({0: 0.2, 7: 0.4})  # half way in ln T
    assert curve.at_by_seed(8.0, "val") == pytest.approx({0: 0.4})  # seed 7 ends at 4
    assert curve.at_by_seed(4.0, "val") == pytest.approx({0: 0.3, 7: 0.6})
    assert curve.at_by_seed(0.5, "val") == pytest.approx({0: 0.1, 7: 0.2})  # constant outside
    assert curve.at_by_seed(64.0, "val") == pytest.approx({0: 0.5})
    assert curve.at_by_seed(2.0) == pytest.approx({0: 0.1, 7: 0.2})  # the test accuracy by default


def test_the_mean_at_a_temperature_is_over_the_seeds_that_were_run():
    curve = by_hand()
    assert curve.means("val") == pytest.approx([0.15, 0.45, 0.5])
    assert curve.at(2.0, "val") == pytest.approx(0.3)
    assert curve.at(64.0, "val") == pytest.approx(0.5)
    assert [*curve.by_seed(curve.temperatures[2], "val").values()] == [0.5]
    assert curve.runs == 5


def test_some_seeds_of_a_curve():
    curve = by_hand(lr=0.1)
    alone = curve.only([7])
    assert alone.temperatures.tolist() == [1.0, 4.0]
    assert (alone.seeds, alone.val.tolist(), alone.test.tolist()) == (
        (7,),
        [[0.2, 0.6]],
        [[0.1, 0.3]],
    )
    assert (alone.runs, alone.diverged, alone.facts) == (2, 1, {"lr": 0.1})
    assert curve.matched().seeds == (0,)  # the one that has the whole grid
    assert curve.only([0]).matched().seeds == (0,)
    gaps = np.array([[0.1, np.nan], [np.nan, 0.2]])
    none_whole = Curve({}, np.array([1.0, 2.0]), (0, 1), gaps, gaps, ~np.isnan(gaps))
    assert none_whole.matched() is none_whole


def test_the_oracle_chooses_by_validation_and_takes_the_lowest_of_equals():
    grid, ran = np.array([1.0, 2.0, 4.0]), np.ones((1, 3), bool)
    val, test = np.array([[0.2, 0.5, 0.5]]), np.array([[0.9, 0.1, 0.1]])
    assert Curve({}, grid, (0,), val, test, ran).best == 2.0
    # Two seeds have 42 of 288 right at each T, but the means round apart.
    counts = np.array([[1, 2, 5], [41, 40, 37]]) / 144
    assert counts.mean(axis=0)[0] < counts.mean(axis=0)[1]
    assert Curve({}, grid, (0, 1), counts, counts, np.ones((2, 3), bool)).best == 1.0
    fewer = np.array([[0.5, 0.5 + 1e-8]])  # one sample of a hundred million is a difference
    assert Curve({}, grid[:2], (0,), fewer, fewer, ran[:, :2]).best == 2.0
    unknown = np.full((1, 3), np.nan)
    curve = Curve({}, grid, (0,), unknown, test, ran)
    assert (curve.chosen_on, curve.best) == ("test", 1.0)
    with pytest.raises(TstarError, match=r"val_accuracy is missing in a finished run"):
        curve.values("val")
    with pytest.raises(TstarError, match="metric 'loss'"):
        curve.values("loss")


def test_the_untouched_model():
    values = np.array([[0.2, 0.5], [0.3, 0.5]])
    grid, ran = np.array([1.0, 2.0]), np.ones((2, 2), bool)
    plain = Curve({"norm": "none"}, grid, (0, 1), values, values, ran)
    named = {"default": {1: {"val": 0.0, "test": 0.0}, 5: {"val": 0.6, "test": 0.8}}}
    both = Condition({}, (plain,), named)
    assert both.plain_by_seed() == pytest.approx({0: 0.2, 1: 0.3, 5: 0.8})  # a curve goes first
    assert both.plain() == pytest.approx(1.3 / 3)
    assert Condition({}, (), named).plain("val") == pytest.approx(0.3)
    assert Condition({}, (), {}).plain() is None


def test_a_list_for_a_message_ends_with_how_many_more():
    curves = [by_hand(dataset=f"set{i}", lr=0.1, csg=None, epochs=3) for i in range(9)]
    assert listed(curves[:8]) == "\n".join(f"  dataset=set{i}, lr=0.1" for i in range(8))
    assert listed(curves, 3).splitlines()[2:] == ["  dataset=set2, lr=0.1", "  … and 6 more"]


def test_conditions_are_ordered_by_number_then_text_then_what_is_missing():
    facts = [{"dataset": "a"}, {"dataset": "a", "size": "b"}, {"dataset": "a", "size": 10}]
    facts += [{"dataset": "a", "size": 9.5}, {"dataset": "A", "size": 99}]
    names = [f.get("size") for f in sorted(facts, key=order)]
    assert names == [99, 9.5, 10, "b", None]
    assert without({"dataset": "a", "lr": 0.1}, "lr") == without({"dataset": "a", "lr": 0.2}, "lr")
    assert without({"dataset": "a"}, "lr") != without({"dataset": "b"}, "lr")


def test_runs_without_seeds_are_numbered_at_each_temperature(runs):
    found = grouped(runs.drop(columns="seed"))
    assert {c.seeds for c in found} == {(0, 1)}
    assert [c.means("val").tolist() for c in found] == [
        c.means("val").tolist() for c in grouped(runs)
    ]


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
        assert found.methods == {
            "insert-ln": {
                seed: {"val": row["val_accuracy"], "test": row["test_accuracy"]}
                for seed, row in rows.iterrows()
            }
        }


def test_curves_of_any_norm_and_of_conditions_read_before(runs):
    mixed = pd.concat([runs, runs.assign(norm="none"), runs.assign(backbone="matched")])
    assert len(grids(mixed)) == 4
    assert len(grids(mixed, norm=None)) == 8
    assert content(grids(conditions(mixed))) == content(grids(mixed))
    with pytest.raises(TstarError, match=r"norm='layer' in 4 conditions"):
        grids(conditions(mixed), norm="layer")
    with pytest.raises(TstarError, match="No finished runs found among 12"):
        conditions(runs.assign(status="failed").head(12))


def test_several_runs_of_a_seed_at_one_temperature_are_one_by_their_mean(runs):
    both = pd.concat([runs, runs.assign(val_accuracy=runs["val_accuracy"] / 2)])
    for found, once in zip(grouped(both), grouped(runs), strict=True):
        assert found.seeds == once.seeds
        np.testing.assert_allclose(found.val, 0.75 * once.val)
