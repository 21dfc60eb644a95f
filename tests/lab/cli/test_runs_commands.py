"""``tstar runs`` as a user types it."""

import csv
import json
import re
from pathlib import Path

import pytest

from tests.lab.sweep.small import finish, with_own
from tstar.errors import TstarError
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.study import load_study


def test_runs_are_listed_shown_exported_and_merged(run):
    run("sweep", "study.toml")
    rows = json.loads(run("runs", "ls", "--json").stdout)
    assert len(rows) == 4
    assert {row["temperature"] for row in rows} == {1.0, 2.0}
    assert isinstance(rows[0]["curves"]["val_accuracy"], list)
    table = run("runs", "ls", "runs.db", "--where", "temperature == 2").stdout
    assert "2 runs: 2 done" in table
    key = rows[0]["key"]
    assert key[:8] in run("runs", "ls").stdout
    shown = json.loads(run("runs", "show", "runs.db", key[:10], "--json").stdout)
    assert shown["key"] == key
    assert "val_accuracy" in run("runs", "show", "runs.db", key).stdout
    assert "4 runs" in run("runs", "export", "runs.db", "out.csv").stdout
    assert Path("out.csv").read_text(encoding="utf-8").count("digits") >= 4
    assert "4 added" in run("runs", "merge", "runs.db", "--into", "all.db").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["runs", "ls", "none.db"], "does not exist"),
        (["runs", "show", "none.db", "abc"], "does not exist"),
        (["runs", "ls", "--status", "finished"], "Unknown status"),
        (["runs", "merge", "none.db", "--into", "all.db"], "does not exist"),
    ],
)
def test_errors_say_what_to_do(run, words, message):
    with pytest.raises(TstarError, match=re.escape(message)):
        run(*words)


def test_names_are_text_and_never_markup(run):
    run("sweep", "study.toml", "--max-runs", "2")
    with Store("runs.db") as store:
        bad = ("[/x]\x1b[31m\u202e", "Traceback …\nboom [/y]\x07")
        store._db.execute("UPDATE runs SET dataset = ?, status = 'failed', error = ?", bad)
    listed = run("runs", "ls").stdout
    assert "[/x]\\x1b[31m\\u202e" in listed
    assert "boom [/y]\\x07" in listed
    key = json.loads(run("runs", "ls", "--json").stdout)[0]["key"]
    shown = run("runs", "show", "runs.db", key).stdout
    assert "[/x]\\x1b" in shown
    assert re.search(r"finished \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", shown)
    assert "\x1b[31m" not in listed + shown


def test_the_values_of_a_metric_are_chosen_by_listed_shown_and_exported(run):
    run("sweep", "study.toml")
    assert "test metric" not in run("runs", "ls").stdout
    with Store("runs.db") as store:
        keys = [row["key"] for row in store.rows()]
        store._db.execute("UPDATE runs SET test_metric = 0.875 WHERE key = ?", (keys[0],))
    listed = run("runs", "ls", "--where", "test_metric > 0.5").stdout
    assert "1 run: 1 done" in listed
    assert re.search(r"test metric .*\n.*0\.875", listed)
    assert "val metric" not in listed
    assert re.search(r"test_metric 0\.875", run("runs", "show", "runs.db", keys[0]).stdout)
    run("runs", "export", "runs.db", "out.csv")
    with open("out.csv", newline="", encoding="utf-8") as file:
        assert [row["test_metric"] for row in csv.DictReader(file)] == ["0.875", "", "", ""]


def test_parts_that_tell_runs_apart_are_listed(run):
    spec, *_ = load_study("study.toml").specs
    with Store("runs.db", create=True) as store:
        finish(store, spec)
        finish(store, with_own(spec, "./kit.py:noise"))
    head, *lines = run("runs", "ls").stdout.splitlines()
    assert "augment" in head
    assert "loss" not in head
    assert ["./kit.py:noise" in line for line in lines[:2]] == [False, True]
    listed = run("runs", "ls", "--where", 'augment == "./kit.py:noise"').stdout
    assert "1 run: 1 done" in listed
