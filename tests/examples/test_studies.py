"""The study to copy, and the scripts for clusters."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tstar.sweep.store import Store

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the scripts are for POSIX shells")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CLUSTER = sorted((EXAMPLES / "cluster").glob("*.sh"))


def commands(readme):
    lines = readme.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def run(command, folder, **variables):
    """A line of shell in which ``tstar`` is this interpreter's."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "tstar").write_text(
        f'#!/bin/sh\nexec {sys.executable} -m tstar "$@"\n', encoding="utf-8"
    )
    (tools / "tstar").chmod(0o755)
    variables = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "MPLBACKEND": "Agg",
        **variables,
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=variables,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_the_study_to_copy_gives_curves_a_fit_and_a_report(tmp_path):
    for needed in ("sklearn", "pandas", "scipy", "matplotlib"):
        pytest.importorskip(needed)
    folder = tmp_path / "own_study"
    shutil.copytree(EXAMPLES / "own_study", folder)
    shown = [run(command, folder) for command in commands(folder / "README.md")]
    assert "10 missing" in shown[0]
    assert "5 runs: 5 done" in shown[2]
    assert "from 2 conditions, 10 runs" in shown[3]
    assert (folder / "report" / "index.html").stat().st_size > 10_000
    with Store(folder / "own.db") as store:
        rows = list(store.rows())
    assert {row["loss"] for row in rows} == {"./parts.py:loss"}
    assert all(row["test_accuracy"] > 0.3 for row in rows)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("script", CLUSTER, ids=lambda path: path.name)
def test_the_scripts_are_sound_shell(script):
    subprocess.run(["bash", "-n", script], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", "-e", "SC2207", script], check=True)


STUDY = """
csg = false
[training]
epochs = 1
[[grid]]
dataset = "digits"
model = "mlp"
num_features = 8
temperature = [1, 2, 4]
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_tasks_of_a_job_array_make_one_study(tmp_path):
    pytest.importorskip("sklearn")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    for task in ("1", "2"):
        run(
            f"bash {EXAMPLES / 'cluster' / 'array.sh'} study.toml stores",
            tmp_path,
            SLURM_ARRAY_TASK_ID=task,
            SLURM_ARRAY_TASK_COUNT="2",
            WORKERS="1",
        )
    run("tstar runs merge stores/part-*.db --into all.db", tmp_path)
    with Store(tmp_path / "all.db") as store:
        rows = list(store.rows())
    assert sorted(row["temperature"] for row in rows) == [1.0, 2.0, 4.0]
    assert len({row["studies"] for row in rows}) == 1
