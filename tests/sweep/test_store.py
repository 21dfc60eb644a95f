"""The store: claims, results, what happens on a bad disk, and what is never lost."""

import json
import multiprocessing
import os
import sqlite3
import time
from contextlib import closing

import pytest

from tests.sweep.small import finish
from tstar.errors import TstarError
from tstar.sweep.store import LEASE, SCHEMA, Store
from tstar.sweep.transfer import load_runs, merge


def test_a_claim_is_exclusive_and_a_result_final(path, specs):
    with Store(path, create=True) as mine, Store(path, create=True) as yours:
        assert mine.claim(specs[0])
        assert not yours.claim(specs[0])
        assert yours.claim(specs[1])
        assert mine.finish(specs[0].key, "done", {"val_accuracy": 0.5})
        assert not mine.claim(specs[0])
        assert not yours.claim(specs[0])
        assert not yours.finish(specs[0].key, "done", {"val_accuracy": 0.9})
        assert yours.get(specs[0].key)["val_accuracy"] == 0.5


class Clock:
    """The store's own clock, moved by hand, so that a busy machine changes nothing."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_a_claim_without_a_heartbeat_is_taken_over_and_its_result_refused(path, specs, clock):
    with Store(path, create=True, lease=0.3) as slow, Store(path, lease=0.3) as other:
        assert slow.claim(specs[0])
        assert not other.claim(specs[0])
        clock.now += 0.2
        slow.beat()
        clock.now += 0.2
        assert not other.claim(specs[0])  # the heartbeat kept it
        clock.now += 0.2
        assert not other.claim(specs[0])  # 0.2 s seen without a change
        clock.now += 0.2
        assert other.claim(specs[0])
        assert other.get(specs[0].key)["attempts"] == 2
        assert not slow.finish(specs[0].key, "done", {"val_accuracy": 0.1})
        assert other.finish(specs[0].key, "done", {"val_accuracy": 0.2})
        assert other.get(specs[0].key)["val_accuracy"] == 0.2


def test_the_lease_is_long_against_the_heartbeat(path, specs, clock):
    """A heartbeat is due every ten seconds; twelve of them may be missed."""
    assert LEASE == 120.0
    with Store(path, create=True) as slow, Store(path) as other:
        assert slow.claim(specs[0])
        assert not other.claim(specs[0])
        clock.now += 119.9
        assert not other.claim(specs[0])
        clock.now += 0.1
        assert other.claim(specs[0])


def test_a_beat_changes_the_heartbeat_where_the_clock_stands_still(path, specs, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 500.0)
    with Store(path, create=True) as store:
        assert store.claim(specs[0])
        beats = [store.get(specs[0].key)["heartbeat"]]
        for now in (500.0, 400.0, 600.0):
            monkeypatch.setattr(time, "time", lambda now=now: now)
            store.beat()
            beats.append(store.get(specs[0].key)["heartbeat"])
    assert beats == pytest.approx([500.0, 500.001, 500.002, 600.0], abs=1e-6)


def _claim_and_die(path, spec):
    store = Store(path, create=True)
    assert store.claim(spec)
    os._exit(9)


def test_the_claim_of_a_dead_process_of_this_host_is_taken_at_once(path, specs):
    process = multiprocessing.get_context("fork").Process(
        target=_claim_and_die, args=(path, specs[0])
    )
    process.start()
    process.join()
    with Store(path, lease=1e6) as store:
        assert store.get(specs[0].key)["status"] == "running"
        assert store.claim(specs[0])


def test_the_claim_of_another_host_waits_for_the_lease(path, specs):
    with Store(path, create=True) as far, Store(path, create=True, lease=1e6) as near:
        far.host, far.pid = "elsewhere", 2**22 + 1  # no such process here, but it is not our host
        assert far.claim(specs[0])
        assert not near.claim(specs[0])
        near.lease = 0.0
        assert near.claim(specs[0])


def test_failed_runs_are_tried_again_unless_told_otherwise(path, specs):
    with Store(path, create=True) as store:
        store.claim(specs[0])
        store.finish(specs[0].key, "failed", {"error": "no"})
        assert not store.claim(specs[0], retry_failed=False)
        assert store.claim(specs[0])
        row = store.get(specs[0].key)
        assert (row["attempts"], row["error"]) == (2, None)


def test_release_gives_back_what_is_under_way_and_nothing_else(path, specs):
    with Store(path, create=True) as store, Store(path) as other:
        finish(store, specs[0])
        store.claim(specs[1])
        other.claim(specs[2])
        store.release()
        assert {row["key"]: row["status"] for row in store.rows()} == {
            specs[0].key: "done",
            specs[2].key: "running",
        }


def test_a_newer_store_is_refused_and_left_alone(path, specs):
    with Store(path, create=True) as store:
        finish(store, specs[0])
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    before = path.read_bytes()
    with pytest.raises(TstarError, match="newer version"):
        Store(path, create=True)
    assert path.read_bytes() == before


def test_files_that_are_no_store_are_refused_and_left_alone(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and long enough to be read as one " * 20, encoding="utf-8")
    with pytest.raises(TstarError, match="not a store of tstar"):
        Store(text, create=True)
    assert text.read_text(encoding="utf-8").startswith("not a database")
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE runs_of_mine (x)")
    with pytest.raises(TstarError, match="another SQLite file"):
        Store(other, create=True)
    with pytest.raises(TstarError, match="does not exist"):
        Store(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(TstarError, match="folder must exist"):
        Store(tmp_path / "no" / "folder.db", create=True)


def test_a_full_disk_is_said_and_nothing_stored_is_lost(path, specs):
    with Store(path, create=True) as store:
        finish(store, specs[0])
        store.claim(specs[1])
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(TstarError, match=r"full.*free some space.*is still there"):
            store.finish(specs[1].key, "done", {"curves": {"loss": [0.123456789] * 10_000}})
        with pytest.raises(TstarError, match="full"):
            [store.claim(spec) for spec in specs[2:]]
        store._db.execute("PRAGMA max_page_count = 1000000")
        assert store.finish(specs[1].key, "done", {"val_accuracy": 0.25})
    with Store(path) as store:
        assert store.get(specs[0].key)["val_accuracy"] == 0.5
        assert store.get(specs[1].key)["val_accuracy"] == 0.25


def test_a_read_only_store_is_said(path, specs):
    with Store(path, create=True) as store:
        finish(store, specs[0])
        store._db.execute("PRAGMA query_only = ON")
        with pytest.raises(TstarError, match="read-only; choose a writable --store"):
            store.claim(specs[1])
        assert store.get(specs[0].key)["status"] == "done"


def test_weights_are_written_whole_or_not_at_all(path, monkeypatch):
    from pathlib import Path

    with Store(path, create=True) as store:
        store.save_weights("k", b"abc")
        assert store.weights_path("k").read_bytes() == b"abc"

        def full(self, content):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", full)
        with pytest.raises(TstarError, match="No space left"):
            store.save_weights("k", b"other")
    assert store.weights_path("k").read_bytes() == b"abc"


def test_one_run_is_found_by_how_its_key_starts(path, specs):
    with Store(path, create=True) as store:
        for spec in specs:
            finish(store, spec)
        assert store.find(specs[0].key)["key"] == specs[0].key
        with pytest.raises(TstarError, match="8 runs start with"):
            store.find("")
        with pytest.raises(TstarError, match="No runs start with"):
            store.find("%")


def test_a_store_of_the_first_schema_is_read_and_extended(path, specs):
    """Written before the columns existed: read as it is, and given them when a sweep goes on with it."""
    with Store(path, create=True) as store:
        finish(store, specs[0])
    with closing(sqlite3.connect(path)) as db:
        for name in ("backbone", "trunk_features", "depth", "classes", "train_samples", "studies"):
            db.execute(f"ALTER TABLE runs DROP COLUMN {name}")
        db.execute("PRAGMA user_version = 1")
    with Store(path) as old:
        assert next(old.rows())["backbone"] == "as-is"
        assert old.get(specs[0].key)["classes"] is None
        assert old.asked() == []
    with Store(path, create=True) as upgraded:
        finish(upgraded, specs[1])
        assert [row["backbone"] for row in upgraded.rows()] == ["as-is", "as-is"]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] > 1


@pytest.mark.parametrize("ahead", [-3600.0, 86400.0])
def test_no_clock_of_another_host_matters(path, specs, ahead, clock):
    """An hour behind it is not taken over at once; a day ahead it does not block the run."""
    with Store(path, create=True) as far, Store(path, create=True, lease=0.2) as near:
        far.host = "elsewhere"
        assert far.claim(specs[0])
        far._db.execute("UPDATE runs SET heartbeat = heartbeat + ?", (ahead,))
        assert not near.claim(specs[0])
        far.beat()
        clock.now += 0.25
        assert not near.claim(specs[0])  # it has changed since the first look
        clock.now += 0.25
        assert near.claim(specs[0])


def test_a_heartbeat_always_changes_whatever_the_clock_does(path, specs, monkeypatch):
    with Store(path, create=True) as store:
        store.claim(specs[0])
        seen = [store.get(specs[0].key)["heartbeat"]]
        monkeypatch.setattr(time, "time", lambda: 0.0)
        for _ in range(3):
            store.beat()
            seen.append(store.get(specs[0].key)["heartbeat"])
    assert len(set(seen)) == 4


def test_a_deleted_store_is_noticed_and_said(path, specs):
    with Store(path, create=True) as store:
        store.claim(specs[0])
        path.unlink()
        with pytest.raises(TstarError, match=r"deleted or replaced .* are lost unless"):
            store.finish(specs[0].key, "done", {"val_accuracy": 0.5})


def test_of_a_damaged_store_nothing_is_promised(path, specs):
    with Store(path, create=True) as store:
        for spec in specs:
            finish(store, spec)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(bytes(content))
    with Store(path) as store, pytest.raises(TstarError, match="runs may be lost") as caught:
        list(store.rows())
    assert "still there" not in str(caught.value)


def test_runs_remember_every_study_that_asks_for_them(path, specs, tmp_path):
    with Store(path, create=True) as store:
        store.claim(specs[0], study=("first", "a"))
        store.finish(specs[0].key, "done", {})
        store.join([specs[0].key, "not there"], ("second", "b"))
        assert json.loads(store.get(specs[0].key)["studies"]) == {"first": "a", "second": "b"}
    with Store(tmp_path / "other.db", create=True) as store:
        store.claim(specs[0], study=("third", "c"))
        store.finish(specs[0].key, "done", {})
    merge([path, tmp_path / "other.db"], tmp_path / "all.db")
    with Store(tmp_path / "all.db") as store:
        assert {*json.loads(store.get(specs[0].key)["studies"])} == {"first", "second", "third"}
    pytest.importorskip("pandas")
    assert len(load_runs(path, study="second")) == 1
    with pytest.raises(TstarError, match="Unknown study 'thrid'; did you mean 'third'"):
        load_runs(tmp_path / "all.db", study="thrid")


def test_a_given_csg_is_never_taken_for_a_measured_one(path, specs):
    from dataclasses import replace

    with Store(path, create=True) as store:
        for csg, spec in ((9.0, replace(specs[0], csg=9.0, data_checksum="x")),
                          (3.0, replace(specs[1], data_checksum="x"))):  # fmt: skip
            store.claim(spec)
            store.finish(spec.key, "done", {"csg": csg})
        assert store.known_csg("x") == 3.0


def test_a_store_does_not_take_its_own_run_twice(path, specs):
    with Store(path, create=True, lease=0.0) as store:
        assert store.claim(specs[0])
        assert not store.claim(specs[0])  # whatever the lease
        assert store.alive(store.get(specs[0].key))
        assert store.get(specs[0].key)["attempts"] == 1


def test_a_transaction_that_breaks_leaves_nothing_behind(path, specs):
    def keys():
        yield specs[0].key
        raise KeyError("broken")

    with Store(path, create=True) as store, Store(path) as other:
        store.claim(specs[0], study=("first", "a"))
        with pytest.raises(KeyError):
            store.join(keys(), ("second", "b"))
        assert json.loads(store.get(specs[0].key)["studies"]) == {"first": "a"}
        assert other.claim(specs[1])  # the file is not locked
        store.join([specs[0].key], ("second", "b"))
        assert json.loads(other.get(specs[0].key)["studies"]) == {"first": "a", "second": "b"}


def test_a_study_joins_runs_that_no_study_asked_for(path, specs):
    with Store(path, create=True) as store:
        store.claim(specs[0])
        assert store.get(specs[0].key)["studies"] is None
        store.join([specs[0].key], ("later", "x"))
        assert json.loads(store.get(specs[0].key)["studies"]) == {"later": "x"}
        store.claim(specs[1], study=("first", "a"))
        store.finish(specs[1].key, "failed", {})
        store.claim(specs[1])  # tried again, for no study
        assert json.loads(store.get(specs[1].key)["studies"]) == {"first": "a"}


def test_the_status_of_the_runs_that_are_asked_for(path, specs):
    with Store(path, create=True) as store:
        finish(store, specs[0])
        finish(store, specs[1], status="diverged")
        store.claim(specs[2])
        keys = [spec.key for spec in specs]
        assert store.status([*keys[1:4], "unknown"]) == {keys[1]: "diverged", keys[2]: "running"}
        assert store.status([]) == {}
        assert store.get("unknown") is None


def test_rows_may_be_chosen_and_forgotten(path, specs):
    with Store(path, create=True) as store:
        for spec in specs[:3]:
            finish(store, spec)
        store.claim(specs[3])
        assert [row["key"] for row in store.rows()] == [spec.key for spec in specs[:4]]
        assert [row["key"] for row in store.rows({"status": "running"})] == [specs[3].key]
        assert [*store.rows({"status": "done", "error": "x"})] == []
        store.forget(specs[1].key)
        assert {row["key"] for row in store.rows()} == {specs[i].key for i in (0, 2, 3)}
        assert store.claim(specs[1])


def test_a_row_is_put_in_place_of_its_like(path, specs):
    with Store(path, create=True) as store:
        finish(store, specs[0], accuracy=0.5)
        row = store.get(specs[0].key)
        store.insert(row | {"val_accuracy": 0.75, "no column": 1})
        assert store.get(specs[0].key) == row | {"val_accuracy": 0.75}
        assert len([*store.rows()]) == 1


def test_a_claim_describes_its_run_and_its_holder(path, specs):
    with Store(path, create=True) as store:
        before = time.time()
        store.claim(specs[0])
        row = store.get(specs[0].key)
    assert json.loads(row["spec"]) == json.loads(json.dumps(specs[0].to_dict()))
    assert (row["status"], row["attempts"], row["pid"]) == ("running", 1, os.getpid())
    assert (row["host"], row["claim"]) == (store.host, store.claim_token)
    assert before <= row["started"] == row["heartbeat"] <= time.time()
    assert (row["dataset"], row["num_features"]) == (specs[0].dataset, specs[0].num_features)


def test_a_cell_of_another_kind_is_named(path, specs):
    with Store(path, create=True) as store:
        finish(store, specs[0])
        store._db.execute("UPDATE runs SET val_accuracy = 'high'")
        for ask in (lambda: store.get(specs[0].key), lambda: [*store.rows()]):
            with pytest.raises(
                TstarError, match=f"run {specs[0].key[:24]} has 'high' as its val_acc"
            ):
                ask()


def test_files_of_a_run_lie_beside_the_store(path):
    with Store(path, create=True) as store:
        assert store.weights_path("k") == path.parent / f"{path.name}.weights" / "k.pt"
        assert store.checkpoint_path("k") == path.parent / f"{path.name}.checkpoints" / "k.pt"


def test_a_replaced_store_is_noticed(path, specs, tmp_path):
    with Store(path, create=True) as store:
        store.claim(specs[0])
        store.check_file()  # it is still there
        with Store(tmp_path / "new.db", create=True):
            pass
        (tmp_path / "new.db").replace(path)
        for ask in (store.check_file, store.beat):
            with pytest.raises(TstarError, match="deleted or replaced while it was in use"):
                ask()


def test_of_a_fault_without_advice_nothing_is_promised(path):
    store = Store(path, create=True)
    said = "could not be used: odd; check the path and the disk"
    with pytest.raises(TstarError, match=said), store._explained():
        raise sqlite3.OperationalError("odd")
    store.close()
    with pytest.raises(TstarError, match="Cannot operate on a closed database"):
        store.get("k")


def test_no_csg_is_known_of_data_that_nobody_measured(path, specs):
    with Store(path, create=True) as store:
        finish(store, specs[0])
        assert store.known_csg("x") is None
        store._db.execute("UPDATE runs SET csg = 2.5, data_checksum = 'x'")
        assert store.known_csg("x") == 2.5
        assert store.known_csg("y") is None


def test_a_study_leaves_the_runs_that_it_asks_for_no_longer(path, specs):
    keys = [spec.key for spec in specs[:4]]
    with Store(path, create=True) as store:
        for spec in specs[:3]:
            store.claim(spec, study=("mine", "old"))
        store.claim(specs[3], study=("other", "x"))
        store.join([keys[2]], ("other", "x"))
        store.join(keys[:1], ("mine", "new"))
        store.leave(keys[:1], ("mine", "new"))
        found = [json.loads(store.get(key)["studies"]) for key in keys]
        assert found == [
            *({"mine": "new"}, {"mine": None}, {"mine": None, "other": "x"}, {"other": "x"}),
        ]
        store.leave([], ("mine", "new"), part=True)  # another part of the same study has it
        assert json.loads(store.get(keys[0])["studies"]) == {"mine": "new"}
        store.leave([], ("mine", "newer"), part=True)
        assert json.loads(store.get(keys[0])["studies"]) == {"mine": None}
        assert len(store.asked()) == 4
