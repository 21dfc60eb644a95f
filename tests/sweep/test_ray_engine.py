"""Ray that cannot be reached, or no longer: one error, soon."""

import socket
import time

import pytest

from tstar.errors import TstarError
from tstar.sweep import ray_engine
from tstar.sweep.execute import Job
from tstar.sweep.plan import make_plan


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
