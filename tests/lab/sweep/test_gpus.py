"""GPUs as a sweep counts them; no GPU is needed."""

import math

import pytest
import torch

import tstar.lab.sweep as sweeping
from tstar.errors import TstarError
from tstar.lab.sweep import engine, ray_engine
from tstar.lab.sweep.engine import LocalEngine
from tstar.lab.training import parts


@pytest.fixture
def two(monkeypatch):
    monkeypatch.setattr(engine, "_gpus", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)


@pytest.fixture
def none(monkeypatch):
    monkeypatch.setattr(engine, "_gpus", lambda: 0)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.parametrize(
    ("given", "devices"),
    [
        ({}, ["cuda:0", "cuda:1"]),
        ({"device": "cuda"}, ["cuda:0", "cuda:1"]),
        ({"device": "cuda", "workers": 3}, ["cuda:0", "cuda:1", "cuda:0"]),
        ({"gpus_per_run": 0.5}, ["cuda:0", "cuda:1"] * 2),
        ({"device": "cuda:1", "gpus_per_run": 0.3}, ["cuda:1"] * 3),
        ({"device": "cpu", "workers": 2}, ["cpu", "cpu"]),
    ],
)
def test_runs_are_shared_out_over_the_gpus(two, given, devices):
    assert LocalEngine(**given).devices == devices


def test_runs_that_share_a_gpu_share_its_memory(monkeypatch):
    """Four that start at once see 16 free bytes each, of which a quarter is theirs."""
    limits = []
    monkeypatch.setattr(parts, "_shares", {})
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *a: limits.append(a))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (16, 16))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 1)
    parts.limit_memory("cpu", 0.25)
    assert parts.free_memory(torch.device("cuda:1")) == 15
    parts.limit_memory("cuda:1", 0.25)
    assert limits == [(0.25, 1)]
    assert parts.free_memory(torch.device("cuda:1")) == 3
    assert parts.free_memory(torch.device("cuda:0")) == 15


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"device": "cuda:2"}, "No device 'cuda:2': the GPUs are cuda:0 to cuda:1"),
        ({"device": "cpu", "gpus_per_run": 0.5}, "No GPU was found for device='cpu'"),
        ({"gpus_per_run": 0}, "0 < gpus_per_run <= 1 must hold"),
        ({"gpus_per_run": 2}, "0 < gpus_per_run <= 1 must hold"),
        ({"gpus_per_run": -0.5}, "0 < gpus_per_run <= 1 must hold"),
        ({"gpus_per_run": math.nan}, "0 < gpus_per_run <= 1 must hold"),
        ({"device": "gpu"}, "device must be a torch device or 'auto', got 'gpu'"),
    ],
)
def test_what_is_not_there_is_refused(two, given, message):
    with pytest.raises(TstarError, match=message):
        LocalEngine(**given)


@pytest.mark.parametrize(
    "given", [{"device": "cuda"}, {"device": "cuda:0"}, {"gpus_per_run": 0.25}]
)
def test_without_a_gpu_nothing_trains_on_the_cpu_instead(none, given, study, tmp_path):
    """Told before the data are read, and before there is a store."""
    with pytest.raises(TstarError, match="No GPU was found"):
        sweeping.run_study(study, tmp_path / "runs.db", **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("device", "gpus", "message"),
    [
        ("cuda:1", None, "device must be auto, cpu or cuda, got 'cuda:1'"),
        ("cpu", 0.5, "contradict each other"),
        ("cuda", 0, "contradict each other"),
        ("auto", 1.5, "a share or a whole number"),
        ("auto", math.nan, "a share or a whole number"),
    ],
)
def test_what_ray_cannot_do_is_refused(device, gpus, message):
    with pytest.raises(TstarError, match=message):
        ray_engine.RayEngine(1, device=device, gpus=gpus)


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
def test_ray_counts_shares_of_its_gpus(monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    try:
        ray.init("local", num_cpus=3, num_gpus=2, **quiet)  # counted, not used
        for given, slots, device in (
            ({}, 2, "cuda"),
            ({"gpus": 0.25}, 8, "cuda"),
            ({"device": "cuda", "gpus": 2}, 1, "cuda"),
            ({"device": "cpu"}, 3, "cpu"),
            ({"gpus": 0}, 3, "cpu"),
        ):
            made = ray_engine.RayEngine(**given)
            assert (made.slots, made._device) == (slots, device), given
        ray.shutdown()
        ray.init("local", num_cpus=1, num_gpus=0, **quiet)
        with pytest.raises(TstarError, match="The Ray cluster has no GPU"):
            ray_engine.RayEngine(device="cuda")
        assert ray_engine.RayEngine()._device == "cpu"
    finally:
        ray.shutdown()
