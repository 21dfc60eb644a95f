"""``tstar sweep``, ``tstar runs`` and ``tstar check`` as a user types them."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tstar.sweep.engine
from tstar.cli.app import _load_commands, app
from tstar.errors import TstarError
from tstar.sweep.execute import execute

STUDY = """
csg = false
[training]
epochs = 1
[[grid]]
dataset = "digits"
model = "mlp"
num_features = 8
temperature = [1, 2]
seeds = 2
"""


class Inline:
    """The local engine's interface without processes, so that the commands are tested quickly."""

    def __init__(self, workers=None, device="auto", gpus_per_run=None):
        self.slots, self.jobs = workers or 1, []

    def submit(self, job):
        self.jobs.append(job)

    def collect(self, timeout):
        return [execute(self.jobs.pop(0))]

    def close(self):
        pass


@pytest.fixture
def run(tmp_path, monkeypatch):
    _load_commands()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tstar.sweep.engine, "LocalEngine", Inline)
    Path("study.toml").write_text(STUDY, encoding="utf-8")

    def call(*words: str, code: int = 0):
        result = CliRunner().invoke(app, list(words))
        if isinstance(result.exception, TstarError):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return call


def test_a_sweep_from_dry_run_to_export(run):
    dry = json.loads(run("sweep", "study.toml", "--dry-run", "--json").stdout)
    assert (dry["runs"], dry["to_do"], dry["status"]) == (4, 4, {"missing": 4})
    assert dry["worker_seconds"] > 0
    assert not Path("runs.db").exists()
    part = json.loads(run("sweep", "study.toml", "--max-runs", "1", "--json").stdout)
    assert (part["done"], part["total"]) == (1, 4)
    dry = json.loads(run("sweep", "study.toml", "--dry-run", "--json").stdout)
    assert (dry["to_do"], dry["status"]) == (3, {"missing": 3, "done": 1})
    assert "3 missing" in run("sweep", "study.toml", "--dry-run").stdout.replace("  ", " ")
    text = run("sweep", "study.toml", "--workers", "2").output
    assert "4/4: 3 done" in text
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


def test_a_dry_run_without_the_data_counts_and_fails(run, tmp_path):
    Path("study.toml").write_text(STUDY.replace('"digits"', '"cifar10"'), encoding="utf-8")
    words = ["sweep", "study.toml", "--dry-run", "--data-root", str(tmp_path)]
    facts = json.loads(run(*words, "--json", code=1).stdout)
    assert facts["runs"] == 4
    assert "cifar10" in facts["problem"]
    with pytest.raises(TstarError, match="cifar10"):
        run(*words)


def test_failed_runs_make_the_command_fail(run, monkeypatch):
    import tstar.sweep.execute as module

    def broken(job, spec, data):
        raise RuntimeError("boom")

    monkeypatch.setattr(module, "_execute", broken)
    result = run("sweep", "study.toml", code=1)
    assert "4 failed" in result.output
    assert "--status failed" in result.output
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sweep", "none.toml"], "could not be read"),
        (["sweep", "study.toml", "--engine", "spark"], "Unknown engine 'spark'"),
        (["sweep", "study.toml", "--store", "no/folder/runs.db"], "its folder must exist"),
        (["runs", "ls", "none.db"], "does not exist"),
        (["runs", "show", "none.db", "abc"], "does not exist"),
        (["runs", "ls", "--status", "finished"], "Unknown status"),
        (["runs", "ls", "--where", "modle == 'mlp'"], "did you mean 'model'"),
        (["runs", "ls", "--where", "model=mlp"], "must compare columns with values"),
        (["runs", "ls", "--where", "__import__('os')"], "must compare columns with values"),
        (["runs", "merge", "none.db", "--into", "all.db"], "does not exist"),
        (["check", "--model", "resnet1", "--data", "digits"], "did you mean 'resnet10'"),
        (["check", "--model", "mlp", "--data", "digit"], "did you mean 'digits'"),
    ],
)
def test_errors_say_what_to_do(run, words, message):
    with pytest.raises(TstarError, match=re.escape(message)):
        run(*words)


def test_check_prints_a_table_and_a_sentence(run):
    words = [
        "check",
        "--model",
        "mlp",
        "--features",
        "8",
        "--data",
        "digits",
        "--temperatures",
        "1,4",
    ]
    result = run(*words, "--seeds", "1", "--budget", "4")
    assert "← peak" in result.stdout
    assert "For this training the formula points at T =" in result.stdout


@pytest.mark.parametrize("words", [["sweep"], ["runs", "ls"], ["runs", "merge"], ["check"]])
def test_help_has_an_example(run, words):
    assert "Example: tstar" in run(*words, "--help").stdout


def test_names_are_text_and_never_markup(run):
    from tstar.sweep.store import Store

    run("sweep", "study.toml", "--max-runs", "2")
    with Store("runs.db") as store:
        store._db.execute("UPDATE runs SET dataset = ?, status = 'failed', error = ?",
                          ("[/x]\x1b[31m\u202e", "Traceback …\nboom [/y]\x07"))  # fmt: skip
    listed = run("runs", "ls").stdout
    assert "[/x]\\x1b[31m\\u202e" in listed
    assert "boom [/y]\\x07" in listed
    key = json.loads(run("runs", "ls", "--json").stdout)[0]["key"]
    shown = run("runs", "show", "runs.db", key).stdout
    assert "[/x]\\x1b" in shown
    assert re.search(r"finished \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", shown)
    assert "\x1b[31m" not in listed + shown


def test_a_part_of_a_study_for_each_job(run):
    for part in ("1/3", "2/3", "3/3"):
        run("sweep", "study.toml", "--part", part, "--store", f"{part[0]}.db")
    merged = run("runs", "merge", "1.db", "2.db", "3.db", "--into", "all.db").stdout
    assert "4 added, 0 replaced, 0 already there" in merged
    for wrong in ("4/3", "0/3", "3", "a/b", "-1/2"):
        with pytest.raises(TstarError, match=r"part must be"):
            run("sweep", "study.toml", f"--part={wrong}")


def test_only_json_goes_to_stdout():
    import subprocess
    import sys

    code = (
        "import os, sys\nfrom tstar.cli.sweep_commands import only_json\n"
        "with only_json(True):\n    print('library'); os.system('echo process')\n"
        "print('{}')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{}\n"
    assert {"library", "process"} <= set(done.stderr.split())
