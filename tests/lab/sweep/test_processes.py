"""Real processes: killed parents, killed workers, two sweeps at once, the same numbers everywhere."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests.lab.sweep.processes import LONGER, RESULTS
from tstar.lab.sweep.plan import make_plan
from tstar.lab.sweep.run import run_sweep
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.study import parse_study

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux", reason="processes are watched through Linux's /proc"
    ),
]


def start(study: Path, store: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tstar", "sweep", str(study), "--store", str(store), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        # Whoever runs the tests in the background has told them to ignore Ctrl-C, which is inherited.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(condition, seconds: float = 600.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def done(store: Path) -> dict[str, tuple]:
    """The finished runs, with what a repetition would change."""
    if not store.exists():
        return {}
    db = sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=30)
    try:
        rows = db.execute(
            "SELECT key, finished, attempts, test_accuracy FROM runs WHERE status = 'done'"
        )
        return {row[0]: tuple(row[1:]) for row in rows}
    except sqlite3.OperationalError:  # the table is not there yet
        return {}
    finally:
        db.close()


def children(pid: int) -> list[int]:
    """And theirs."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return [one for child in map(int, found) for one in (child, *children(child))]


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_a_killed_run_goes_on_from_its_checkpoint_bit_for_bit(tmp_path, inline):
    text = LONGER.replace("[1, 2, 4, 8, 16, 32]", "4").replace("seeds = 2\n", "")
    text = text.replace("epochs = 12", "epochs = 150")
    study, store = tmp_path / "one.toml", tmp_path / "runs.db"
    study.write_text(text, encoding="utf-8")
    options = ("--workers", "1", "--device", "cpu", "--checkpoint", "0.001")

    def saved() -> float:
        """When the run's state was last written; 0 without one."""
        files = tmp_path.glob("runs.db.checkpoints/*.pt")
        return max((file.stat().st_mtime for file in files), default=0.0)

    for _ in range(2):
        before = saved()
        process = start(study, store, *options)
        assert wait_for(lambda t=before: saved() > t or done(store))
        workers = children(process.pid)
        process.kill()
        process.communicate()
        assert wait_for(lambda w=workers: not any(map(alive, w)))
        assert not done(store), "the run ended before it could be killed: make it longer"
    (tmp_path / "runs.db.checkpoints" / "x.7.part").touch()  # as if killed in the midst of writing
    process = start(study, store, *options)
    assert process.wait(1200) == 0
    process.communicate()
    assert not list(tmp_path.glob("runs.db.checkpoints/*"))
    with Store(tmp_path / "inline.db", create=True) as undisturbed:
        run_sweep(make_plan(parse_study(text), undisturbed), undisturbed, inline())
        (expected,) = undisturbed.rows()
    with Store(store) as opened:
        (row,) = opened.rows()
    assert all(row[name] == expected[name] for name in (*RESULTS, "steps"))


def test_ctrl_c_is_clean(tmp_path):
    study, store = tmp_path / "study.toml", tmp_path / "runs.db"
    # Long enough that runs are left when the signal comes, however late that is.
    study.write_text(LONGER.replace("epochs = 12", "epochs = 200"), encoding="utf-8")
    process = start(study, store, "--workers", "2")
    assert wait_for(lambda: len(done(store)) >= 2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "goes on from there" in output
    assert "Traceback" not in output
    with Store(store) as opened:
        assert {row["status"] for row in opened.rows()} == {"done"}


@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_ray_with_two_workers_of_which_one_is_killed(tmp_path, monkeypatch, inline):
    ray = pytest.importorskip("ray")
    from tstar.lab.sweep.ray_engine import RayEngine

    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    study = parse_study(LONGER.replace("epochs = 12", "epochs = 30"))
    killed = []

    def workers() -> list[int]:
        """Processes of Ray that are at a run right now; Ray puts the task's name into their title."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                title = (entry / "cmdline").read_bytes()
                parent = int(
                    (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
                )
            except OSError:
                continue
            if title.startswith(b"ray::_remote") and _descends(parent):
                found.append(int(entry.name))
        return found

    def kill_once(tally) -> None:
        busy = workers()
        if not killed and tally.done >= 2 and busy:
            os.kill(busy[0], signal.SIGKILL)
            killed.append(busy[0])

    try:
        engine = RayEngine(2)
        assert engine.slots == 2
        with Store(tmp_path / "ray.db", create=True) as store:
            tally = run_sweep(make_plan(study, store), store, engine, update=kill_once)
            rows = {row["key"]: row for row in store.rows()}
        assert engine._data == {}  # released after the last run
    finally:
        ray.shutdown()
    assert len(killed) == 1
    assert (tally.done, tally.failed) == (len(study), 0)
    with Store(tmp_path / "inline.db", create=True) as store:
        plan = make_plan(study, store)
        run_sweep(plan, store, inline(), max_runs=2)
        for row in store.rows():
            assert all(row[name] == rows[row["key"]][name] for name in RESULTS)


def _descends(pid: int) -> bool:
    """Whether a process is a descendant of this one, so that nobody else's is killed."""
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            pid = int(
                Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
            )
        except OSError:
            return False
    return False
