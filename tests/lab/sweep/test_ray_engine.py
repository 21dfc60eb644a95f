"""Ray that dies under way: the sweep ends, and another one goes on."""

import subprocess
import sys
import time

import pytest

from tstar.lab.sweep import ray_engine
from tstar.lab.sweep.plan import make_plan
from tstar.lab.sweep.run import run_sweep
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.study import parse_study

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


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_a_head_that_is_killed_ends_the_sweep_and_a_new_one_goes_on(tmp_path, monkeypatch):
    """Two nodes, twice: what was stored stays, and is not run again."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    study, path = tmp_path / "study.toml", tmp_path / "runs.db"
    text = STUDY.replace("epochs = 2", "epochs = 200").replace(
        "= 1\n", "= [1, 2, 3, 4, 5, 6, 7, 8]\n"
    )
    study.write_text(text, encoding="utf-8")
    words = [sys.executable, "-m", "tstar", "sweep", str(study), "--store", str(path)]

    def stored():
        with Store(path, create=True) as store:
            return set(store.status().values()), len(store.status())

    def swept(kill):
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        cluster.add_node(num_cpus=1)
        command = [*words, "--engine", "ray", "--address", cluster.address]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8"}
        process = subprocess.Popen(command, **pipes)
        try:
            if kill:
                _until(lambda: stored()[1])
                cluster.remove_node(cluster.head_node, allow_graceful=False)
            return *process.communicate(timeout=900), process.returncode
        finally:
            process.kill()
            cluster.shutdown()

    _, _, code = swept(kill=True)
    assert code != 0  # Ray ends the program in its own words
    status, before = stored()
    assert status == {"done"}
    assert 0 < before < 8
    _, err, code = swept(kill=False)
    assert code == 0
    assert f"{8 - before} done" in err
    assert f"{before} before" in err


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.skipif(sys.platform != "linux", reason="processes are found through Linux's /proc")
def test_a_ray_of_this_machine_listens_here_alone_and_may_die(tmp_path):
    """Exit code 1, and one sentence unless Ray ends the program first; what was stored stays."""
    pytest.importorskip("ray")
    psutil = pytest.importorskip("psutil")
    study, path = tmp_path / "study.toml", tmp_path / "runs.db"
    text = STUDY.replace("epochs = 2", "epochs = 200").replace("= 1\n", "= [1, 2, 3, 4, 5, 6]\n")
    study.write_text(text, encoding="utf-8")
    words = [sys.executable, "-m", "tstar", "sweep", str(study), "--store", str(path)]
    words += ["--engine", "ray", "--workers", "1"]

    def stored():
        with Store(path, create=True) as store:
            return store.status()

    said = tmp_path / "err.txt"
    with said.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=file)
    try:
        _until(stored)
        started = psutil.Process(process.pid).children(recursive=True)
        for each in started:
            for connection in each.net_connections("inet"):
                if connection.status == psutil.CONN_LISTEN:
                    assert connection.laddr.ip in ("127.0.0.1", "::1", "::ffff:127.0.0.1")
        (raylet,) = (each for each in started if each.name() == "raylet")
        raylet.kill()
        assert process.wait(900) == 1
    finally:
        process.kill()
    text = said.read_text(encoding="utf-8")
    assert "The Ray cluster is gone" in text or "core_worker" in text  # it recovers a lost result
    assert "Traceback" not in text
    before = stored()
    assert set(before.values()) == {"done"}
    assert 0 < len(before) < 6
    again = subprocess.run(words, capture_output=True, encoding="utf-8", timeout=900, check=True)
    assert f"{len(before)} before" in again.stderr


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_a_node_that_dies_costs_nothing_but_time(path, monkeypatch):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    study = parse_study(
        STUDY.replace("epochs = 2", "epochs = 20").replace("= 1\n", "= [1, 2, 4, 8]\n")
    )
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    node, removed = cluster.add_node(num_cpus=1), []

    def remove_once(tally):
        if not removed and tally.done >= 1:
            removed.append(cluster.remove_node(node))

    try:
        engine = ray_engine.RayEngine(None, cluster.address)
        assert engine.slots == 2
        with Store(path, create=True) as store:
            tally = run_sweep(make_plan(study, store), store, engine, update=remove_once)
        assert (len(removed), tally.done, tally.failed) == (1, 4, 0)
        engine.close()
    finally:
        ray.shutdown()
        cluster.shutdown()


def _until(condition, seconds=600.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.2)
    raise AssertionError("it did not come about")
