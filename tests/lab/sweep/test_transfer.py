"""Runs out of a store and into another: exports, merges, tables."""

import csv
import re

import pandas as pd
import pytest

from tests.lab.sweep.small import finish, with_own
from tstar.errors import TstarError
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.transfer import choose, export, load_runs, merge


def test_an_export_to_an_unknown_format_is_refused(path, specs, tmp_path):
    with pytest.raises(TstarError, match=r"\.parquet or \.csv"):
        export(path, tmp_path / "x.xlsx")


def test_merging_prefers_results_and_reports_differences(tmp_path, specs):
    a, b, into = (tmp_path / name for name in ("a.db", "b.db", "into.db"))
    with Store(a, create=True) as store:
        finish(store, specs[0], 0.1)
        finish(store, specs[1], status="failed")
        finish(store, specs[2], 0.3)
        store.save_weights(specs[0].key, b"weights")
    with Store(b, create=True) as store:
        finish(store, specs[0], 0.1)
        finish(store, specs[1], 0.2)
        finish(store, specs[2], 0.4)
    done = merge([a, b], into)
    assert (done.added, done.replaced, done.kept) == (3, 1, 2)
    assert done.differing == (specs[2].key,)
    with Store(into) as store:
        rows = {row["key"]: (row["status"], row["val_accuracy"]) for row in store.rows()}
        store.weights_path(specs[0].key).unlink()
    (tmp_path / "link.db").symlink_to(a)
    assert merge([tmp_path / "link.db"], into).kept == 3  # what is missing beside a row comes, too
    with Store(into) as store:
        assert store.weights_path(specs[0].key).read_bytes() == b"weights"
    assert rows == {
        specs[0].key: ("done", 0.1),
        specs[1].key: ("done", 0.2),
        specs[2].key: ("done", 0.3),
    }
    with pytest.raises(TstarError, match="into itself"):
        merge([a], a)
    with pytest.raises(TstarError, match="does not exist"):
        merge([tmp_path / "none.db"], tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_store_comes_back_from_its_export(path, specs, tmp_path, ending):
    with Store(path, create=True) as store:
        for number, spec in enumerate(specs[:3]):
            finish(store, spec, accuracy=0.1 + number / 3)
        export(path, tmp_path / f"runs{ending}")
        kept = {row["key"]: row for row in store.rows()}
    done = merge([tmp_path / f"runs{ending}"], tmp_path / "back.db")
    assert done.added == 3
    with Store(tmp_path / "back.db") as back:
        for spec in specs[:3]:
            assert back.status()[spec.key] == "done"  # a sweep has nothing left to do here
        for row in back.rows():
            same = ("status", "spec", "test_accuracy", "seed", "curves", "attempts", "lr")
            assert {n: row[n] for n in same} == {n: kept[row["key"]][n] for n in same}
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(TstarError, match="no column key or spec"):
        merge([tmp_path / "other.csv"], tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "'=", "\t="])
def test_no_cell_of_a_csv_is_a_formula_and_reading_gives_the_name_back(
    path, specs, tmp_path, start
):
    name = f"{start}cmd()"
    with Store(path, create=True) as store:
        finish(store, specs[0])
        store._db.execute("UPDATE runs SET dataset = ?", (name,))
        export(path, tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["dataset"] == f"'{name}"
    assert all(
        cell[:1] not in "=+-@" for cell in row.values() if not re.fullmatch(r"[-+\d.e]*", cell)
    )
    assert load_runs(tmp_path / "x.csv")["dataset"][0] == name


@pytest.mark.parametrize("ending", ["db", "csv", "parquet"])
def test_a_study_chooses_from_a_store_and_from_its_exports(path, specs, tmp_path, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    file = path if ending == "db" else tmp_path / f"x.{ending}"
    with Store(path, create=True) as store:
        for spec, digest in zip(specs[:3], ("old", "new", "new"), strict=True):
            store.put(spec, "done", {}, studies={"mine": digest})
        store.ask([spec.key for spec in specs[1:3]], ("mine", "new"))
        if ending != "db":
            assert export(path, file) == 3
            assert export(path, tmp_path / f"mine.{ending}", study="mine") == 2
    assert [*load_runs(file, study="mine")["key"]] == [spec.key for spec in specs[1:3]]
    assert len(load_runs(file, where=f"temperature == {specs[1].temperature}", study="mine")) >= 1
    with pytest.raises(TstarError, match="did you mean 'mine'"):
        load_runs(file, study="main")


@pytest.mark.parametrize("ending", ["db", "csv", "parquet"])
def test_a_column_that_may_name_a_part_comes_through_exports_and_merges(
    path, specs, tmp_path, ending
):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    name = "./kit.py:noise"
    file = path if ending == "db" else tmp_path / f"x.{ending}"
    with Store(path, create=True) as store:
        finish(store, specs[0])
        if ending != "db":
            export(path, file)
        assert load_runs(file)["augment"].dtype == "Int64"  # as ever
        finish(store, with_own(specs[1], name))
        finish(store, with_own(specs[2], False, None))
        if ending != "db":
            export(path, file)
    assert [*load_runs(file)["augment"]] == ["1", name, "0"]
    assert len(load_runs(file, where=f'augment == "{name}"')) == 1
    merge([file], tmp_path / "into.db")
    with Store(tmp_path / "into.db") as store:
        assert [row["augment"] for row in store.rows()] == [1, name, 0]


RUNS = pd.DataFrame(
    {
        "key": ["a", "b", "c"],
        "model": pd.array(["vgg9", "mlp", None], "string"),
        "lr": [0.1, 0.01, float("nan")],
        "seed": pd.array([3, 0, None], "Int64"),
        "studies": ['{"mine": "cd", "other": "x"}', '{"mine": null}', None],
    }
)


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        ('model == "vgg9" and lr == 0.1', "a"),
        ('model not in ["mlp", "vgg9"]', "c"),
        ("0.01 < lr <= 0.1", "a"),
        ("lr > -1", "ab"),
        ("lr != lr", "c"),
        (" seed >= 0 ", "ab"),
    ],
)
def test_columns_are_compared_with_values(where, chosen):
    assert "".join(choose(RUNS, where, None)["key"]) == chosen


@pytest.mark.parametrize(
    "where",
    [
        *("lr = 1", "", "(", "lr", "seed", "1", "model == vgg9", 'modle == "x"', "(lambda: 1)()"),
        *("__import__('os').system('x') == 0", "model > 3", "(" * 5000),
    ],
)
def test_what_compares_no_columns_with_values_is_an_error(where):
    with pytest.raises(TstarError, match="must compare columns with values"):
        choose(RUNS, where, None)
