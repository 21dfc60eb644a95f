"""Where runs take place: the small interface, and this machine's cores or GPUs.

One process per slot, one thread per process: two threads on one small network gain nothing, two
processes gain almost a factor of two. Nothing of the caller's state leaks into a run: on a CPU under Linux, workers are
forked from a fresh process that has torch imported already (:mod:`tstar.sweep.warm`), so that they share its pages;
elsewhere, and for GPUs, which do not survive a fork, each is spawned. They exit when their parent dies.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Protocol

from tstar.data.limits import LOADERS
from tstar.errors import TstarError
from tstar.sweep.execute import Job, Outcome

ENGINES = ("local", "ray")
UNGUARDED = 78  # a worker's exit code where the script starts a sweep while it is imported


def unguarded() -> TstarError:
    return TstarError(
        "Worker processes import the script that starts the sweep, so the call must be guarded: put it below "
        "if __name__ == '__main__':"
    )


class Engine(Protocol):
    """Submit a run, get a record. ``slots`` is how many runs go on at once."""

    slots: int

    def submit(self, job: Job) -> None: ...

    def collect(self, timeout: float) -> list[Outcome]:
        """The runs that ended, after at most ``timeout`` seconds; a dead worker's run is ``lost``."""
        ...

    def close(self) -> None:
        """Stop everything at once. Runs under way are given up."""
        ...


class LocalEngine:
    """Runs in processes of this machine; with GPUs, worker i uses GPU i mod their number."""

    def __init__(
        self, workers: int | None = None, device: str = "auto", gpus_per_run: float | None = None
    ) -> None:
        share = 1.0 if gpus_per_run is None else gpus_per_run
        if not 0 < share <= 1:
            raise TstarError(f"0 < gpus_per_run <= 1 must hold on one machine, but got {share!r}.")
        gpus = _gpus() if device.startswith(("auto", "cuda")) else 0
        if not gpus and (device.startswith("cuda") or gpus_per_run is not None):
            raise TstarError(
                f"No GPU was found for device={device!r}; use cpu, or leave the option out."
            )
        _check_device(device, gpus)
        own = "" if device in ("auto", "cuda") else device
        self.slots = workers or (int(1 / share) * (1 if own else gpus) if gpus else _cores())
        kind = "cpu" if device == "auto" else device
        self.devices = [
            own or (f"cuda:{index % gpus}" if gpus else kind) for index in range(self.slots)
        ]
        self._workers: list[_Worker | None] = [None] * self.slots

    def submit(self, job: Job) -> None:
        index = next(i for i, worker in enumerate(self._workers) if worker is None or worker.free)
        worker = self._workers[index]
        if worker is None:
            loaders = max(1, _cores() // self.slots)
            worker = _Worker(execute_job, loaders, fork=self.devices[index] == "cpu")
            self._workers[index] = worker
        worker.start(replace(job, device=self.devices[index]))

    def collect(self, timeout: float) -> list[Outcome]:
        busy = [worker for worker in self._workers if worker is not None and not worker.free]
        ready = wait([worker.link for worker in busy], timeout) if busy else []
        outcomes = []
        for worker in busy:
            if worker.link not in ready:
                continue
            key = worker.key
            assert key is not None
            try:
                outcome = worker.link.recv()
                worker.key = None
            except (EOFError, OSError):
                worker.stop()
                self._workers[self._workers.index(worker)] = None
                code = worker.process.exitcode
                if code == UNGUARDED:
                    raise unguarded() from None
                outcome = Outcome(
                    key,
                    "failed",
                    {"error": f"The worker process ended with code {code}."},
                    lost=True,
                )
            outcomes.append(outcome)
        return outcomes

    def close(self) -> None:
        for worker in self._workers:
            if worker is not None:
                worker.stop()
        self._workers = [None] * self.slots


class _Worker:
    """A process, the link to it, and the key of the run that it is at."""

    def __init__(self, work: Callable[[Job], Outcome], loaders: int, fork: bool) -> None:
        context = _context(fork)
        self.link, theirs = context.Pipe()
        # As it is now: the process that it is forked from may be older.
        environment = {LOADERS: str(loaders), **os.environ}
        # No daemon: it may have processes that decode images. It ends with its parent, or when it is stopped.
        self.process: BaseProcess = context.Process(  # type: ignore[attr-defined]
            target=_serve, args=(theirs, work, environment), name="tstar-worker", daemon=False
        )
        self.process.start()
        theirs.close()
        self.key: str | None = None

    @property
    def free(self) -> bool:
        return self.key is None

    def start(self, job: Job) -> None:
        self.key = job.spec.key
        # It may have died while idle: collect() finds the closed link and reports the run as lost.
        with contextlib.suppress(OSError):
            self.link.send(job)

    def stop(self) -> None:
        self.link.close()
        self.process.terminate()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def execute_job(job: Job) -> Outcome:
    """One run in a worker: one thread, so that the result is the same on every machine's engine."""
    import torch

    from tstar.sweep.execute import execute

    torch.set_num_threads(1)
    return execute(job)


def _context(fork: bool) -> BaseContext:
    if not fork or sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tstar.sweep.warm"])
    return context


def _serve(
    link: Connection, work: Callable[[Job], Outcome], environment: Mapping[str, str]
) -> None:
    """A worker's life: run after run, until the parent closes the link or dies."""
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)  # in the midst of a run: nobody is left to take its result

    threading.Thread(target=watch, daemon=True).start()
    while True:
        try:
            job = link.recv()
        except (EOFError, OSError):
            return
        link.send(work(job))


def _check_device(name: str, gpus: int) -> None:
    """Raise at once what every run would fail with."""
    if name == "auto":
        return
    from tstar.training.parts import pick_device

    index = pick_device(name).index
    if name.startswith("cuda") and index is not None and index >= gpus:
        raise TstarError(f"There is no device {name!r}: the GPUs are cuda:0 to cuda:{gpus - 1}.")


def _cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def _gpus() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0
