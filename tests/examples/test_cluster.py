"""The job array, with stand-ins for SLURM: ``sbatch`` is bash, ``scontrol`` and ``tstar`` note what they are asked."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "cluster" / "array.sh"
pytestmark = pytest.mark.skipif(
    not SCRIPT.is_file() or os.name == "nt" or not shutil.which("bash"),
    reason="needs bash and the examples",
)


def submit(folder: Path, tstar: str, task: int, *words: str, **more: str) -> subprocess.Popen[str]:
    """Start one task of the array as SLURM does, with a ``tstar`` of these lines."""
    for name, text in (("tstar", tstar), ("scontrol", 'echo "$@" >> scontrol.log')):
        (folder / name).write_text(f"#!/usr/bin/env bash\n{text}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    slurm = {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_JOB_ID": "7", "SLURM_JOB_ID": "8"}
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", **slurm, **more}
    return subprocess.Popen(
        ["bash", str(SCRIPT), *words], cwd=folder, env=environment, start_new_session=True
    )


def noted(folder: Path, name: str) -> str:
    file = folder / f"{name}.log"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def test_the_number_of_parts_is_explicit(tmp_path):
    """Submitted again alone, task 5 does part 5 of 16, whatever the array's size is now."""
    words = ("study.toml", "stores", "16", "--device", "cpu")
    task = submit(tmp_path, 'echo "$@" > tstar.log', 5, *words, SLURM_ARRAY_TASK_COUNT="1")
    assert task.wait(60) == 0
    asked = noted(tmp_path, "tstar")
    assert "sweep study.toml --part 5/16 --store stores/part-5.db" in asked
    assert asked.strip().endswith("--device cpu")
    assert "--workers" not in asked  # one per GPU, else one per core
    assert noted(tmp_path, "scontrol") == ""


@pytest.mark.parametrize(
    ("code", "ends", "requeued"),
    [(0, 0, ""), (1, 1, ""), (75, 0, "requeue 7_2\n"), (137, 0, "requeue 7_2\n")],
)
def test_want_of_memory_is_requeued_and_failures_are_not(tmp_path, code, ends, requeued):
    assert submit(tmp_path, f"exit {code}", 2, "s.toml", "stores", "4").wait(60) == ends
    assert noted(tmp_path, "scontrol") == requeued


def test_the_signal_before_the_end_stops_the_sweep_and_requeues_the_task(tmp_path):
    # What runs in the background of a shell ignores the signal, and so would the script.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    task = submit(tmp_path, "touch ready; exec sleep 600", 2, "s.toml", "stores", "4")
    signal.signal(signal.SIGINT, before)
    while not (tmp_path / "ready").exists():
        time.sleep(0.05)
    task.send_signal(signal.SIGINT)
    assert task.wait(60) == 0
    assert noted(tmp_path, "scontrol") == "requeue 7_2\n"


def test_a_task_is_not_requeued_for_ever(tmp_path):
    task = submit(tmp_path, "exit 75", 2, "s.toml", "stores", "4", SLURM_RESTART_COUNT="50")
    assert task.wait(60) == 75
    assert noted(tmp_path, "scontrol") == ""
