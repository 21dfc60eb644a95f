"""A slice of ``benchmarks/kills.py``: a sweep that is killed loses nothing; and the checks can fail."""

import json
import os
import sqlite3
import subprocess
import sys

import pytest

pytest.importorskip("sklearn")
if os.name == "nt":
    pytest.skip("process groups and SIGKILL are POSIX's", allow_module_level=True)

from benchmarks import kills


@pytest.mark.slow
def test_a_killed_sweep_loses_nothing(tmp_path):
    output = tmp_path / "kills.json"
    command = [sys.executable, kills.__file__, "--kills", "3", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(output.read_text(encoding="utf-8"))
    assert report["counts"]["killed"] >= 3
    assert report["runs_of_the_study"] == 40


def test_a_lost_a_changed_and_a_doubled_run_are_seen(tmp_path):
    reference = {"a": {"nll": 1.0}, "b": {"nll": 2.0}}
    kills.check({"a": {"nll": 1.0}}, {}, reference)
    with pytest.raises(kills.Broken, match="lost: \\['b'\\]"):
        kills.check({"a": {"nll": 1.0}}, {"b": {"nll": 2.0}}, reference)
    with pytest.raises(kills.Broken, match="a: "):
        kills.check({"a": {"nll": 1.0000001}}, {}, reference)
    store = tmp_path / "runs.db"
    with sqlite3.connect(store) as db:
        db.execute("CREATE TABLE runs (key, status)")
        db.executemany("INSERT INTO runs VALUES (?, ?)", [("a", "done"), ("a", "done")])
    db.close()
    with pytest.raises(kills.Broken, match="twice"):
        kills.finished(store)


def test_a_damaged_store_is_seen(tmp_path):
    store = tmp_path / "runs.db"
    store.write_bytes(b"SQLite format 3\x00" + bytes(4096))
    with pytest.raises((kills.Broken, sqlite3.DatabaseError)):
        kills.finished(store)
    assert kills.finished(tmp_path / "none.db") == {}
