"""Reading stores and grouping runs: what counts, and what is said of what does not."""

import sqlite3

import numpy as np
import pandas as pd
import pytest

from research.synthetic import planted_runs
from tstar import TstarError
from tstar.curves import Condition, Curve, grids, read
from tstar.sweep.store import Store

TASKS = ((1.5, 10), (20.0, 100))


@pytest.fixture
def runs():
    return planted_runs(grid=[1.0, 4.0, 16.0], tasks=TASKS, widths=(64, 256), seeds=2, noise=0.01)


def grouped(runs, **options):
    return grids(runs, **({"metric": "val"} | options))


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
    assert grouped(shuffled) == grouped(runs)


def test_metric_chooses_the_column(runs):
    assert [c.means("test").tolist() for c in grouped(runs)] != [
        c.means("val").tolist() for c in grouped(runs)
    ]
    swapped = runs.rename(
        columns={"val_accuracy": "test_accuracy", "test_accuracy": "val_accuracy"}
    )
    assert [c.means("test").tolist() for c in grouped(swapped)] == [
        c.means("val").tolist() for c in grouped(runs)
    ]


def test_a_diverged_run_is_a_result_at_chance(runs):
    index = runs.index[(runs["temperature"] == 1.0) & (runs["num_classes"] == 100)]
    runs.loc[index, "status"] = "diverged"
    runs.loc[index, "val_accuracy"] = np.nan
    found = [c for c in grouped(runs) if c.facts["num_classes"] == 100]
    assert all(c.seen(0, "val").tolist() == [0.01, 0.01] for c in found)
    assert all(c.diverged == 2 for c in found)
    # Whatever was recorded.
    assert grouped(runs.fillna({"val_accuracy": 0.77})) == grouped(runs)


def test_a_run_that_diverged_early_stays_in_its_condition(runs):
    runs = runs.assign(epochs=3, steps=300)
    runs.loc[0, ["status", "epochs", "steps"]] = ["diverged", 1, 17]
    assert len(grouped(runs)) == 4


def test_failed_running_and_teacher_runs_are_no_results(runs):
    extra = runs.assign(val_accuracy=0.0)
    for change in (
        {"status": "failed"},
        {"status": "running"},
        {"role": "teacher"},
        {"norm": "none"},
        {"method": "kd"},
    ):
        assert grouped(pd.concat([runs, extra.assign(**change)])) == grouped(runs), change


def test_none_left_says_what_is_there(runs):
    with pytest.raises(TstarError, match=r"norm='batch'.*norm: none \(24\)"):
        grouped(runs.assign(norm="none"))
    with pytest.raises(TstarError, match=r"status: failed \(24\)"):
        grouped(runs.assign(status="failed"))


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


def test_missing_columns_are_named(runs):
    with pytest.raises(TstarError, match="column 'val_accuracy' for metric='val'"):
        grouped(runs.drop(columns="val_accuracy"))
    with pytest.raises(TstarError, match="column 'temperature'"):
        grouped(runs.drop(columns="temperature"))
    with pytest.raises(TstarError, match="metric 'loss'"):
        grouped(runs, metric="loss")


def test_bad_stores_are_named(tmp_path):
    with pytest.raises(TstarError, match="does not exist"):
        read(tmp_path / "nothing.db")
    with pytest.raises(TstarError, match="data frame or the path"):
        read([1, 2])
    (tmp_path / "runs.xlsx").write_text("", encoding="utf-8")
    with pytest.raises(TstarError, match=r"\.xlsx"):
        read(tmp_path / "runs.xlsx")
    (tmp_path / "text.db").write_text(
        "this is no database at all, not even a little", encoding="utf-8"
    )
    with pytest.raises(TstarError, match="not a store of tstar"):
        read(tmp_path / "text.db")
    sqlite3.connect(tmp_path / "empty.db").close()
    (tmp_path / "empty.db").touch()
    with pytest.raises(TstarError, match="must be a store of tstar"):
        read(tmp_path / "empty.db")


def test_reading_leaves_the_frame_alone(runs):
    before = runs.copy(deep=True)
    grouped(runs)
    pd.testing.assert_frame_equal(runs, before)


def test_the_sweep_s_own_store_is_read(runs, tmp_path):
    from tstar.sweep.store import Store

    with Store(tmp_path / "runs.db", create=True) as store:
        for number, row in enumerate(runs.to_dict("records")):
            store.insert(row | {"key": f"{number:x}", "attempts": 1, "role": "run", "epochs": 3})
    read_back = grouped(read(tmp_path / "runs.db"))
    assert [c.val.tolist() for c in read_back] == [c.val.tolist() for c in grouped(runs)]
    assert all(c.facts["epochs"] == 3 for c in read_back)


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


def test_accuracies_by_seed_are_those_that_were_run():
    values, ran = np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[True, True], [True, False]])
    curve = Curve({}, np.array([1.0, 2.0]), (0, 7), values, values, ran)
    assert curve.by_seed(1.0) == {0: 0.1, 7: 0.3}
    assert curve.by_seed(2.0) == {0: 0.2}
    assert curve.by_seed(3.0) == {}
