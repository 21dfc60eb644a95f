"""Ray that cannot be reached, or no longer: one error, soon."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tstar.errors import TstarError
from tstar.sweep import ray_engine
from tstar.sweep.execute import Job
from tstar.sweep.plan import make_plan
from tstar.sweep.store import Store

STUDY = """
csg = false
[training]
epochs = 2
[[grid]]
dataset = "digits"
model = "mlp"
num_features = 8
temperature = 1
"""


def test_work_that_does_not_end_is_given_up():
    started = time.monotonic()
    with pytest.raises(TimeoutError, match="no answer"):
        ray_engine._in_time(lambda: time.sleep(60), 0.2)
    assert time.monotonic() - started < 10
    assert ray_engine._in_time(lambda: 3, 10) == 3
    with pytest.raises(KeyError):
        ray_engine._in_time(lambda: {}["x"], 10)


def test_an_address_is_reachable_when_something_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert ray_engine._reachable(f"127.0.0.1:{port}")
        assert ray_engine._reachable(f"ray://127.0.0.1:{port}")
    assert not ray_engine._reachable(f"127.0.0.1:{port}")
    assert ray_engine._reachable("auto")


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_an_unreachable_address_fails_soon_and_says_so():
    pytest.importorskip("ray")
    started = time.monotonic()
    with pytest.raises(TstarError, match=r"No Ray cluster answers at '127\.0\.0\.1:1'"):
        ray_engine.RayEngine(1, "127.0.0.1:1")
    assert time.monotonic() - started < 30


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_goes_away_is_an_error_soon(study, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    engine = ray_engine.RayEngine(1)
    try:
        with pytest.raises(TstarError, match="already connected to"):
            ray_engine.RayEngine(1, "10.0.0.1:6379")
        engine.submit(Job(make_plan(study, None).specs[0]))
        ray.shutdown()
        started = time.monotonic()
        with pytest.raises(TstarError, match="The Ray cluster is gone"):
            _wait(engine)
        engine.close()
        assert time.monotonic() - started < 30
    finally:
        ray.shutdown()


def _wait(engine):
    while True:
        engine.collect(0.5)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_a_sweep_whose_head_is_killed_ends_soon_and_gives_its_runs_back(tmp_path):
    pytest.importorskip("ray")
    study = tmp_path / "study.toml"
    study.write_text(STUDY.replace("epochs = 2", "epochs = 3000"), encoding="utf-8")
    words = ["sweep", str(study), "--store", str(tmp_path / "runs.db"), "--engine", "ray", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "tstar", *words, "--workers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"},
    )
    try:
        head = _until(lambda: _descendant(process.pid, "gcs_server"))
        _until(lambda: _claimed(tmp_path / "runs.db"))
        os.kill(head, signal.SIGKILL)
        started = time.monotonic()
        out, err = process.communicate(timeout=60)
        assert time.monotonic() - started < 45
    finally:
        process.kill()
    assert process.returncode == 1
    assert "The Ray cluster is gone" in err
    assert out == ""
    assert _claimed(tmp_path / "runs.db") == 0


def _until(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.2)
    raise AssertionError("it did not come about")


def _claimed(store):
    if not store.exists():
        return 0
    with Store(store) as opened:
        return sum(row["status"] == "running" for row in opened.rows())


def _descendant(pid, name):
    """A process of this name below ``pid``, so that nobody else's is killed."""
    for child in Path(f"/proc/{pid}/task").glob("*/children"):
        for one in child.read_text(encoding="utf-8").split():
            if name in Path(f"/proc/{one}/comm").read_text(encoding="utf-8"):
                return int(one)
            if found := _descendant(one, name):
                return found
    return None
