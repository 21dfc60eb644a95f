"""The store: one owner, results, what happens on a bad disk, and what is never lost."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress

import pytest

from tests.lab.sweep.small import finish
from tstar.errors import TstarError
from tstar.lab.sweep.store import SCHEMA, Store, owned
from tstar.lab.sweep.transfer import load_runs, merge

OWNER = """
import sys, time
from tstar.lab.sweep.store import owned
with owned(sys.argv[1]):
    print("mine", flush=True)
    time.sleep(600)
"""


def test_a_store_has_one_owner_at_a_time(path):
    with (
        owned(path),
        pytest.raises(TstarError, match=rf"process {os.getpid()} on {socket.gethostname()}"),
        owned(path),
    ):
        pass
    with owned(path), owned(path.with_name("other.db")):
        pass


@pytest.mark.skipif(os.name == "nt", reason="links of Unix")
def test_a_store_has_one_owner_by_whatever_path(path, tmp_path, specs):
    (tmp_path / "link.db").symlink_to(path)
    (tmp_path / "folder").symlink_to(tmp_path)
    for other in (tmp_path / "link.db", tmp_path / "folder" / "runs.db"):
        with owned(path), pytest.raises(TstarError, match="owned by process"), owned(other):
            pass
        with Store(other, create=True) as store:
            assert store.weights_path("k").parent == path.with_name("runs.db.weights")


def test_results_are_stored_together_or_not_at_all(path, specs):
    with Store(path, create=True) as store:
        with store.together():
            finish(store, specs[0])
            finish(store, specs[1])
        with suppress(ZeroDivisionError), store.together():
            finish(store, specs[2])
            raise ZeroDivisionError
        assert [*store.status()] == [specs[0].key, specs[1].key]


def test_a_checkpoint_stays_until_its_run_is_stored(path, specs):
    with Store(path, create=True) as store:
        file = store.checkpoint_path(specs[0].key)
        file.parent.mkdir()
        file.touch()
        finish(store, specs[0], status="failed")
        with store.together():
            finish(store, specs[0])
            assert file.exists()
        assert not file.exists()
        # A kill between the commit and the end of together(), and in the midst of writing.
        other, weights = store.checkpoint_path(specs[1].key), store.weights_path(specs[0].key)
        weights.parent.mkdir()
        for left in (file, other, weights, other.with_suffix(".part")):
            left.touch()
        store.clear_up()
        assert {*path.parent.glob("*.*/*")} == {other, weights}


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize("stopped", [False, True])
def test_the_owner_s_lock_lives_and_dies_with_its_process(path, stopped):
    """A stopped owner keeps it, a killed one does not; the store can be read all the time."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(path)], stdout=subprocess.PIPE, encoding="utf-8"
    )
    try:
        assert owner.stdout.readline() == "mine\n"
        if stopped:
            owner.send_signal(signal.SIGSTOP)
        with pytest.raises(TstarError, match=f"owned by process {owner.pid} on "), owned(path):
            pass
        with Store(path, create=True) as store:
            assert store.status() == {}
    finally:
        owner.kill()
        owner.communicate()
    with owned(path):
        pass


def test_a_result_describes_its_run(path, specs):
    with Store(path, create=True) as store:
        before = time.time()
        store.put(specs[0], "failed", {"error": "no", "not a column": 1})
        store.put(specs[0], "done", {"val_accuracy": 0.5, "host": "here"}, studies={"s": "h"})
        row = store.get(specs[0].key)
    assert json.loads(row["spec"]) == json.loads(json.dumps(specs[0].to_dict()))
    assert (row["status"], row["attempts"], row["error"]) == ("done", 2, None)
    assert (row["val_accuracy"], row["host"]) == (0.5, "here")
    assert before <= row["finished"] <= time.time()
    assert (row["dataset"], row["num_features"]) == (specs[0].dataset, specs[0].num_features)


def _put(path, index):
    from tests.lab.sweep.conftest import STUDY
    from tstar.lab.sweep.study import parse_study

    with Store(path, create=True) as store:
        for spec in parse_study(STUDY).specs[index::2]:
            finish(store, spec)


def test_two_processes_may_put_runs_into_one_store(path, specs):
    words = [sys.executable, "-c", "import sys; from tests.lab.sweep.test_store import _put; _put(sys.argv[1], int(sys.argv[2]))"]  # fmt: skip
    both = [subprocess.Popen([*words, str(path), str(i)]) for i in range(2)]
    assert [process.wait(300) for process in both] == [0, 0]
    with Store(path) as store:
        assert store.status() == {spec.key: "done" for spec in specs}


@pytest.mark.parametrize("version", [SCHEMA - 1, SCHEMA + 1])
def test_a_store_of_another_version_is_refused_and_left_alone(path, specs, version):
    with Store(path, create=True) as store:
        finish(store, specs[0])
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(TstarError, match="another version of tstar"):
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
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(TstarError, match=r"full.*have room.*is still there"):
            store.put(specs[1], "done", {"curves": {"loss": [0.123456789] * 10_000}})
        store._db.execute("PRAGMA max_page_count = 1000000")
        store.put(specs[1], "done", {"val_accuracy": 0.25})
    with Store(path) as store:
        assert store.get(specs[0].key)["val_accuracy"] == 0.5
        assert store.get(specs[1].key)["val_accuracy"] == 0.25


def test_one_run_is_found_by_how_its_key_starts(path, specs):
    with Store(path, create=True) as store:
        for spec in specs:
            finish(store, spec)
        assert store.find(specs[0].key)["key"] == specs[0].key
        with pytest.raises(TstarError, match="8 runs start with"):
            store.find("")
        with pytest.raises(TstarError, match="No runs start with"):
            store.find("%")


def test_a_deleted_or_replaced_store_is_noticed_and_said(path, specs, tmp_path):
    with Store(path, create=True) as store:
        finish(store, specs[0])
        with Store(tmp_path / "new.db", create=True):
            pass
        (tmp_path / "new.db").replace(path)
        with pytest.raises(TstarError, match=r"deleted or replaced .* are lost unless"):
            finish(store, specs[1])
        path.unlink()
        with pytest.raises(TstarError, match=r"deleted or replaced .* are lost unless"):
            finish(store, specs[1])


def test_of_a_damaged_store_nothing_is_promised(path, specs):
    with Store(path, create=True) as store:
        for spec in specs:
            finish(store, spec)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(TstarError, match="malformed; it is not a store of tstar, or damaged"):
        load_runs(path)


def test_runs_remember_every_study_that_asks_for_them(path, specs, tmp_path):
    keys = [spec.key for spec in specs]

    def studies(store, index):
        return json.loads(store.get(keys[index])["studies"])

    with Store(path, create=True) as store:
        for spec in specs[:3]:
            store.put(spec, "done", {}, studies={"mine": "old"})
        store.put(specs[3], "failed", {}, studies={"other": "x"})
        store.put(specs[3], "done", {})  # tried again, for no study
        store.ask([keys[2], keys[3]], ("other", "x"))
        store.ask(keys[:1], ("mine", "new"))
        found = [studies(store, index) for index in range(4)]
        assert found == [
            {"mine": "new"},
            {"mine": None},
            {"mine": None, "other": "x"},
            {"other": "x"},
        ]
        store.ask([], ("mine", "new"), part=True)  # another part of the same study has it
        assert studies(store, 0) == {"mine": "new"}
        store.ask([], ("mine", "newer"), part=True)
        assert studies(store, 0) == {"mine": None}
    with Store(tmp_path / "b.db", create=True) as other:
        other.put(specs[0], "done", {}, studies={"mine": "b"})
    merge([path, tmp_path / "b.db"], tmp_path / "all.db")
    with Store(tmp_path / "all.db") as both:
        assert studies(both, 0) == {"mine": "b"}
        assert studies(both, 2) == {"other": "x"}


@pytest.mark.parametrize("given", [None, 8.0])
def test_a_given_csg_is_never_taken_for_a_measured_one(path, specs, given):
    from dataclasses import replace

    with Store(path, create=True) as store:
        store.put(replace(specs[0], csg=given, data_checksum="x"), "done", {"csg": 2.5})
        assert store.known_csg("x") == (2.5 if given is None else None)
        assert store.known_csg("y") is None
