"""The study to copy, and the scripts for clusters."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tstar.lab.sweep.store import Store

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the scripts are for POSIX shells")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CLUSTER = sorted((EXAMPLES / "cluster").glob("*.sh"))


def commands(readme):
    lines = readme.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


TOOLS = {"tstar": f'exec {sys.executable} -m tstar "$@"'}
# SLURM and Ray as far as a script sees them: each command is noted in the file ``told``, a node of Ray stays until it is killed.
SLURM = {
    "scontrol": "for node in $3; do echo $node; done",
    "srun": "for word; do case $word in --nodelist=*) export NODE=${word#*=};; esac; done\n"
    'while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"',
    "hostname": "echo 10.0.0.1 fe80::1",
    "ray": 'test "$1" = start || exec grep -q head told\n'
    'echo "$NODE $$ $*" >> told\nexec sleep 600',
    "python": f'exec {sys.executable} "$@"',
    "tstar": 'echo "tstar 0 $*" >> told',
}
RAY = """
from pathlib import Path
def init(address, **options):
    Path("told").open("a").write(f"wait 0 {address}\\n")
def nodes():
    return [{"Alive": " start " in line} for line in Path("told").read_text().splitlines()]
"""


def run(command, folder, tools_of=TOOLS, **variables):
    """A line of shell in which ``tstar`` is this interpreter's, or other tools than the system's are found."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    for name, text in tools_of.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tools / name).chmod(0o755)
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
        timeout=3600,
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
    assert "20 missing" in shown[0]
    assert "10 runs: 10 done" in shown[2]
    assert "from 2 conditions, 10 runs" in shown[3]
    assert (folder / "report" / "index.html").stat().st_size > 10_000
    with Store(folder / "own.db") as store:
        rows = list(store.rows())
    assert {row["loss"] for row in rows} == {"./parts.py:focal"}
    assert all(row["test_accuracy"] > 0.3 for row in rows if row["norm"] == "batch")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize("script", CLUSTER, ids=lambda path: path.name)
def test_the_scripts_are_sound_shell(script):
    subprocess.run(["bash", "-n", script], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", script], check=True)


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
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    for task in ("1", "2"):
        run(
            f"bash {EXAMPLES / 'cluster' / 'array.sh'} study.toml stores 2 --workers 1",
            tmp_path,
            SLURM_ARRAY_TASK_ID=task,
        )
    run("tstar runs merge stores/part-*.db --into all.db", tmp_path)
    with Store(tmp_path / "all.db") as store:
        rows = list(store.rows())
    assert sorted(row["temperature"] for row in rows) == [1.0, 2.0, 4.0]
    assert len({row["studies"] for row in rows}) == 1


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_script_starts_ray_on_all_nodes_and_ends_it(tmp_path):
    (tmp_path / "ray.py").write_text(RAY, encoding="utf-8")
    run(
        f"bash {EXAMPLES / 'cluster' / 'ray.sh'} study.toml runs.db --gpus-per-run 0.25",
        tmp_path,
        SLURM,
        SLURM_JOB_NODELIST="one two three",
        SLURM_CPUS_PER_TASK="4",
        PORT="6400",
        PYTHONPATH=str(tmp_path),
    )
    told = [
        line.split(" ", 2) for line in (tmp_path / "told").read_text(encoding="utf-8").splitlines()
    ]
    head, *others = (row for row in told if row[2].startswith("start"))
    assert (head[0], sorted(row[0] for row in others)) == ("one", ["three", "two"])
    assert "--head --node-ip-address=10.0.0.1 --port=6400 --num-cpus=4" in head[2]
    assert all("--address=10.0.0.1:6400 --num-cpus=4" in row[2] for row in others)
    assert ["wait", "0", "10.0.0.1:6400"] in told
    assert told[-1][2] == (
        "sweep study.toml --store runs.db --engine ray --address 10.0.0.1:6400 --checkpoint 10 --gpus-per-run 0.25"
    )
    for _, pid, _ in (head, *others):  # Ray has ended with the script
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
