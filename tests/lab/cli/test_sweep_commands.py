"""``tstar sweep`` as a user types it."""

import re
from pathlib import Path

import pytest

from tstar.errors import TstarError


def test_a_sweep_from_dry_run_to_the_end(run):
    dry = run("sweep", "study.toml", "--dry-run").stdout
    assert re.fullmatch(
        r"study: 4 runs\n +4 missing\n  a training step of .* takes [\d.]+ ms\n", dry
    )
    assert not Path("runs.db").exists()
    assert "1/4: 1 done" in run("sweep", "study.toml", "--max-runs", "1").output
    dry = run("sweep", "study.toml", "--dry-run").stdout
    assert re.match(r"study: 4 runs\n +1 done\n +3 missing\n", dry)
    text = run("sweep", "study.toml", "--workers", "2").output
    assert "4/4: 3 done" in text


def test_keys_are_changed_and_a_callback_is_told(run):
    Path("seen.py").write_text(
        "def note(row):\n    with open('seen', 'a') as file:\n"
        "        print(row['lr'], row['seed'], row['status'], file=file)\n",
        encoding="utf-8",
    )
    text = run(
        "sweep", "study.toml", "lr=0.03", "temperature=1", "--on-run", "./seen.py:note"
    ).output
    assert "2/2: 2 done" in text
    assert Path("seen").read_text(encoding="utf-8") == "0.03 0 done\n0.03 1 done\n"


def test_several_studies_are_one_sweep(run):
    text = Path("study.toml").read_text(encoding="utf-8")
    Path("other.toml").write_text(
        text.replace("[[grid]]", "[[grid]]\nlabel_smoothing = 0.1"), encoding="utf-8"
    )
    assert "4/4: 4 done" in run("sweep", "study.toml", "other.toml", "seed=0").output
    with pytest.raises(TstarError, match="A study must be given"):
        run("sweep", "seed=0")


def test_want_of_memory_is_another_exit_code_than_failure(run, monkeypatch):
    def full(job, spec, data):
        raise MemoryError

    monkeypatch.setattr("tstar.lab.sweep.execute._execute", full)
    result = run("sweep", "study.toml", code=75)
    assert "4 to be tried again" in result.output


def test_failed_runs_make_the_command_fail(run, monkeypatch):
    import tstar.lab.sweep.execute as module

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
        (["sweep", "none.toml"], "could not be read; check the path"),
        (["sweep", "study.toml", "--engine", "spark"], "Unknown engine 'spark'"),
        (["sweep", "study.toml", "lr"], "could not be read"),
        (["sweep", "study.toml", "--store", "no/folder/runs.db"], "its folder must exist"),
    ],
)
def test_errors_say_what_to_do(run, words, message):
    with pytest.raises(TstarError, match=re.escape(message)):
        run(*words)


def test_a_part_of_a_study_for_each_job(run):
    for part in ("1/3", "2/3", "3/3"):
        run("sweep", "study.toml", "--part", part, "--store", f"{part[0]}.db")
    merged = run("runs", "merge", "1.db", "2.db", "3.db", "--into", "all.db").stdout
    assert "4 added, 0 replaced, 0 already there" in merged
    for wrong in ("4/3", "0/3", "3", "a/b", "-1/2"):
        for dry in ([], ["--dry-run"]):
            with pytest.raises(TstarError, match=r"part must be"):
                run("sweep", "study.toml", f"--part={wrong}", *dry)


def test_a_dry_run_counts_the_runs_of_its_part(run):
    words = ["sweep", "study.toml", "--dry-run", "--part"]
    found = [run(*words, f"{i}/3").stdout.splitlines()[0] for i in (1, 2, 3)]
    assert found == ["study: 2 runs", "study: 1 run", "study: 1 run"]
