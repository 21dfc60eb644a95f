"""The local engine: real processes, of which some are killed."""

import os
import signal
import sys
from multiprocessing.process import BaseProcess

import numpy as np
import pytest

import tstar.lab.sweep as sweeping
from tests.lab.sweep.processes import LONGER, RESULTS
from tests.lab.sweep.small import rows_of
from tstar.lab.sweep.engine import LocalEngine
from tstar.lab.sweep.execute import Job
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


def test_a_killed_worker_costs_one_attempt_of_one_run(tmp_path):
    study = parse_study(LONGER.replace("epochs = 12", "epochs = 30"))
    engine = LocalEngine(2, "cpu")
    killed = []

    def kill_once(tally) -> None:
        # In the midst of a run: a result that waits in the pipe would outlive its worker.
        busy = [w for w in engine._workers if w is not None and w.key and not w.link.poll()]
        if not killed and tally.done >= 2 and busy:
            os.kill(busy[0].process.pid, signal.SIGKILL)
            killed.append(busy[0].process.pid)

    with Store(tmp_path / "runs.db", create=True) as store:
        tally = run_sweep(make_plan(study, store), store, engine, update=kill_once)
    engine.close()
    assert (tally.done, tally.failed, tally.retried) == (len(study), 0, 1)


def test_a_worker_that_does_not_start_costs_one_attempt_of_one_run(study, tmp_path, monkeypatch):
    """The server that forks workers was killed: its end of the pipe is closed."""
    start, calls = BaseProcess.start, []

    def start_second(process) -> None:
        calls.append(process)
        if len(calls) == 1:
            raise EOFError("unexpected EOF")
        start(process)

    monkeypatch.setattr(BaseProcess, "start", start_second)
    engine = LocalEngine(1, "cpu")
    with Store(tmp_path / "runs.db", create=True) as store:
        tally = run_sweep(make_plan(study, store), store, engine)
    engine.close()
    assert (tally.done, tally.failed, tally.retried) == (len(study), 0, 1)


def test_the_numbers_do_not_depend_on_the_engine_or_its_workers(study, tmp_path, inline):
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with Store(tmp_path / "inline.db", create=True) as store:
            run_sweep(make_plan(study, store), store, inline())
    finally:
        torch.set_num_threads(threads)
    tables = [rows_of(tmp_path / "inline.db")]
    for workers in (1, 2):
        path = tmp_path / f"{workers}.db"
        sweeping.run_study(study, path, workers=workers, device="cpu")
        tables.append(rows_of(path))
    for key, row in tables[0].items():
        for other in tables[1:]:
            assert all(row[name] == other[key][name] for name in RESULTS)


def test_images_that_do_not_fit_into_memory_give_the_same_numbers(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(0)
    for part, count in (("train", 30), ("test", 10)):
        for name in "ab":
            (tmp_path / "toy" / part / name).mkdir(parents=True)
            for sample in range(count):
                pixels = random.integers(0, 256, (8, 8, 3), dtype=np.uint8)
                image.fromarray(pixels).save(tmp_path / "toy" / part / name / f"{sample}.png")
    study = parse_study(
        'csg = false\n[training]\nepochs = 2\nbatch_size = 16\n[[grid]]\ndataset = "toy"\n'
        'model = "resnet10"\nnum_features = 8\ntemperature = [1, 4]\n'
    )
    tables = []
    for megabytes in ("100", "0"):  # also: workers see the environment as it is now
        monkeypatch.setenv("TSTAR_MEMORY_MB", megabytes)
        path = tmp_path / f"{megabytes}.db"
        sweeping.run_study(study, path, workers=1, device="cpu", data_root=str(tmp_path))
        tables.append(rows_of(path))
    held, decoded = tables
    assert len(held) == 2
    for key, row in held.items():
        assert row["status"] == "done", row["error"]
        assert all(row[name] == decoded[key][name] for name in RESULTS)


def test_an_idle_worker_that_died_is_replaced(study):
    engine = LocalEngine(1, "cpu")
    try:
        plan = make_plan(study, None)
        engine.submit(Job(plan.specs[0]))
        (first,) = _collect(engine)
        assert first.status == "done"
        engine._workers[0].process.kill()
        engine._workers[0].process.join()
        engine.submit(Job(plan.specs[1]))
        (lost,) = _collect(engine)
        assert lost.status == "requeue"
        engine.submit(Job(plan.specs[1]))
        (second,) = _collect(engine)
        assert second.status == "done"
    finally:
        engine.close()


def _collect(engine):
    for _ in range(3000):
        outcomes = engine.collect(0.2)
        if outcomes:
            return outcomes
    raise AssertionError("nothing ended")
