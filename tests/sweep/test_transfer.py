"""Runs out of a store and into another: exports, merges, tables."""

import csv
import json

import pytest

from tests.sweep.small import finish, with_own
from tstar.errors import TstarError
from tstar.sweep.select import asked_by
from tstar.sweep.store import Store
from tstar.sweep.transfer import export, load_runs, merge


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_export_holds_what_the_store_holds(path, specs, tmp_path, ending):
    pd = pytest.importorskip("pandas")
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    with Store(path, create=True) as store:
        for number, spec in enumerate(specs[:4]):
            finish(store, spec, number / 7)
        store.claim(specs[4])  # under way: not exported
        assert export(store, tmp_path / f"x.{ending}") == 4
    table, direct = load_runs(tmp_path / f"x.{ending}"), load_runs(path)
    assert list(table["key"]) == [spec.key for spec in specs[:4]]
    assert list(table["val_accuracy"]) == [number / 7 for number in range(4)]
    pd.testing.assert_frame_equal(table, direct, check_dtype=ending == "parquet")
    assert "pid" not in table.columns


def test_an_export_to_an_unknown_format_is_refused(path, specs, tmp_path):
    with Store(path, create=True) as store, pytest.raises(TstarError, match=r"\.parquet or \.csv"):
        export(store, tmp_path / "x.xlsx")


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
        store.claim(specs[3])
    done = merge([a, b], into)
    assert (done.added, done.replaced, done.kept) == (3, 1, 2)
    assert done.differing == (specs[2].key,)
    with Store(into) as store:
        rows = {row["key"]: (row["status"], row["val_accuracy"]) for row in store.rows()}
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
        export(store, tmp_path / f"runs{ending}")
        kept = {row["key"]: row for row in store.rows()}
    done = merge([tmp_path / f"runs{ending}"], tmp_path / "back.db")
    assert done.added == 3
    with Store(tmp_path / "back.db") as back:
        for spec in specs[:3]:
            assert not back.claim(spec)  # a sweep has nothing left to do here
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
    pytest.importorskip("pandas")
    name = f"{start}cmd()"
    with Store(path, create=True) as store:
        finish(store, specs[0])
        store._db.execute("UPDATE runs SET dataset = ?", (name,))
        export(store, tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["dataset"] == f"'{name}"
    assert all(cell[:1] not in "=+-@" for cell in row.values() if cell and not _number(cell))
    assert load_runs(tmp_path / "x.csv")["dataset"][0] == name


def _number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_after_a_merge_a_study_asks_for_what_it_asked_for_last(path, specs, tmp_path):
    """An older copy of a store brings back no stale runs, whichever is merged first."""
    older, newer = tmp_path / "older.db", tmp_path / "newer.db"
    for file, digest, which in ((older, "old", (0, 1)), (newer, "new", (0, 2))):
        with Store(file, create=True) as store:
            for number in which:
                store.claim(specs[number], study=("mine", digest))
                store.finish(specs[number].key, "failed" if number == 0 else "done", {})
    with Store(newer) as store:
        store.claim(specs[0], study=("other", ""))  # a script may give no hash
        store.finish(specs[0].key, "done", {})
    for number, order in enumerate(([older, newer], [newer, older])):
        into = tmp_path / f"{number}.db"
        merge(order, into)
        with Store(into) as store:
            mine = asked_by("mine", store.asked())
            kept = {row["key"]: row for row in store.rows() if mine(row)}
            assert {*kept} == {specs[0].key, specs[2].key}
            assert json.loads(kept[specs[0].key]["studies"]) == {"mine": "new", "other": ""}


@pytest.mark.parametrize("ending", ["db", "csv", "parquet"])
def test_a_study_chooses_from_a_store_and_from_its_exports(path, specs, tmp_path, ending):
    pytest.importorskip("pandas")
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    file = path if ending == "db" else tmp_path / f"x.{ending}"
    with Store(path, create=True) as store:
        for spec, digest in zip(specs[:3], ("old", "new", "new"), strict=True):
            store.claim(spec, study=("mine", digest))
            store.finish(spec.key, "done", {})
        if ending != "db":
            assert export(store, file) == 3
            assert export(store, tmp_path / f"mine.{ending}", study="mine") == 2
    assert [*load_runs(file, study="mine")["key"]] == [spec.key for spec in specs[1:3]]
    assert len(load_runs(file, where=f"temperature == {specs[1].temperature}", study="mine")) >= 1
    with pytest.raises(TstarError, match="did you mean 'mine'"):
        load_runs(file, study="main")


@pytest.mark.parametrize("ending", ["db", "csv", "parquet"])
def test_a_column_that_may_name_a_part_comes_through_exports_and_merges(
    path, specs, tmp_path, ending
):
    pytest.importorskip("pandas")
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    name = "./kit.py:noise"
    file = path if ending == "db" else tmp_path / f"x.{ending}"
    with Store(path, create=True) as store:
        finish(store, specs[0])
        if ending != "db":
            export(store, file)
        assert load_runs(file)["augment"].dtype == "Int64"  # as ever
        finish(store, with_own(specs[1], name))
        finish(store, with_own(specs[2], False, None))
        if ending != "db":
            export(store, file)
    assert [*load_runs(file)["augment"]] == ["1", name, "0"]
    for where, count in ((f'augment == "{name}"', 1), ("augment == True", 1), ("augment == 0", 1)):
        assert len(load_runs(file, where=where)) == count
    merge([file], tmp_path / "into.db")
    with Store(tmp_path / "into.db") as store:
        assert [row["augment"] for row in store.rows()] == [1, name, 0]
