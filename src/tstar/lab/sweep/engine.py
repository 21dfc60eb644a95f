"""Where runs take place: the small interface, and this machine's cores or GPUs.

One process per slot, one thread per process. Nothing of the caller's state leaks into a worker: on
Linux it is forked from a fresh process that has imported torch once for all of them, elsewhere it
is spawned. Workers exit when their parent dies.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

import torch

from tstar.errors import TstarError, unknown
from tstar.lab.sweep.execute import Job, Outcome, execute
from tstar.lab.sweep.materials import DataKey
from tstar.lab.training.parts import limit_memory, pick_device

ENGINES = ("local", "ray")
_WORKER = "tstar-worker"
_UNGUARDED = 78  # a worker's exit code if the script starts a sweep while it is imported


class Engine(Protocol):
    """Submit a run, get a record. ``slots`` is how many runs go on at once."""

    slots: int

    def submit(self, job: Job) -> None: ...

    def collect(self, timeout: float) -> list[Outcome]:
        """The runs that ended, after at most ``timeout`` seconds."""

    def forget(self, data: DataKey) -> None:
        """No further run needs these data."""

    def close(self) -> None:
        """Stop everything at once. Runs under way are given up."""


def make_engine(
    name: str, workers: int | None, device: str, gpus_per_run: float | None, address: str | None
) -> Engine:
    """An engine by name."""
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    if name == "local":
        return LocalEngine(workers, device, gpus_per_run)
    from tstar.lab.sweep.ray_engine import RayEngine

    return RayEngine(workers, address, device, gpus_per_run)


def refuse_workers() -> None:
    """A script without a ``__main__`` guard starts its sweep again in every worker."""
    if multiprocessing.current_process().name == _WORKER:
        os._exit(_UNGUARDED)


class LocalEngine:
    """Runs in processes of this machine; with GPUs, worker i uses GPU i mod their number."""

    def __init__(
        self, workers: int | None = None, device: str = "auto", gpus_per_run: float | None = None
    ) -> None:
        self.share = share = 1.0 if gpus_per_run is None else gpus_per_run
        if not 0 < share <= 1:
            raise TstarError(f"0 < gpus_per_run <= 1 must hold on one machine, but got {share!r}.")
        gpus = _gpus() if device.startswith(("auto", "cuda")) else 0
        if not gpus and (device.startswith("cuda") or gpus_per_run is not None):
            raise TstarError(f"No GPU was found for device={device!r}; use cpu, or leave it out.")
        index = pick_device(device).index or 0  # what every run would fail with
        if gpus and index >= gpus:
            raise TstarError(f"No device {device!r}: the GPUs are cuda:0 to cuda:{gpus - 1}.")
        if device not in ("auto", "cuda"):
            found = [device]
        else:
            found = [f"cuda:{index}" for index in range(gpus)] or ["cpu"]
        self.slots = workers or (int(1 / share) * len(found) if gpus else _cores())
        self.devices = [found[index % len(found)] for index in range(self.slots)]
        self._workers: list[_Worker | None] = [None] * self.slots

    def submit(self, job: Job) -> None:
        index = next(i for i, worker in enumerate(self._workers) if not (worker and worker.key))
        worker = self._workers[index] = self._workers[index] or _Worker(self.share)
        worker.key = job.spec.key
        # It may have died while idle: collect() finds the closed link.
        with contextlib.suppress(OSError):
            worker.link.send(replace(job, device=self.devices[index]))

    def collect(self, timeout: float) -> list[Outcome]:
        busy = [worker for worker in self._workers if worker is not None and worker.key]
        ready = wait([worker.link for worker in busy], timeout) if busy else []
        return [self._outcome(worker) for worker in busy if worker.link in ready]

    def _outcome(self, worker: _Worker) -> Outcome:
        key, worker.key = worker.key, ""
        with contextlib.suppress(EOFError, OSError):
            outcome: Outcome = worker.link.recv()
            return outcome
        worker.stop()
        self._workers[self._workers.index(worker)] = None
        code = worker.process.exitcode
        if code == _UNGUARDED:
            raise TstarError(
                "Worker processes import the script that starts the sweep, so the call must be "
                "guarded: put it below if __name__ == '__main__':"
            )
        how = "did not start" if code is None else f"ended with code {code}"
        error = f"The worker process {how} (-9: killed, often for want of memory)."
        return Outcome(key, "requeue", {"error": error})

    def forget(self, data: DataKey) -> None:
        """Workers keep the last two sets alone."""

    def close(self) -> None:
        for worker in self._workers:
            if worker is not None:
                worker.stop()
        self._workers = [None] * self.slots


class _Worker:
    """A process, the link to it, and the key of the run that it is at."""

    def __init__(self, share: float) -> None:
        context = _context()
        self.key = ""
        self.link, theirs = context.Pipe()
        args = (theirs, dict(os.environ), share)
        # No daemon: a part of your own may start processes.
        self.process = context.Process(target=_serve, args=args, name=_WORKER)
        # The server that forks workers may be killed: collect() finds the closed link.
        with contextlib.suppress(EOFError, ConnectionError):
            self.process.start()
        theirs.close()

    def stop(self) -> None:
        self.link.close()
        if self.process.pid is None:  # it never started
            return
        self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _context() -> Any:
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "torch._dynamo"])
    return context


def _serve(link: Connection, environment: dict[str, str], share: float) -> None:
    """A worker's life: run after run, until the parent closes the link or dies."""
    os.environ.update(environment)  # the caller's, as it is now
    torch.set_num_threads(1)  # so that the result is the same on every engine
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)  # in the midst of a run: nobody is left to take its result

    threading.Thread(target=watch, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        while True:
            job = link.recv()
            limit_memory(job.device, share)
            link.send(execute(job))


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # on Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _gpus() -> int:
    return torch.cuda.device_count() if torch.cuda.is_available() else 0
