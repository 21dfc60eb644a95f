"""Runs on a Ray cluster, or on a Ray instance that is started here.

Ray places the tasks, moves the data and starts lost workers again; the results come back to the
one process that owns the store. A cluster that cannot be reached, or no longer, is an error within half a minute.
"""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tstar.errors import TstarError, require
from tstar.sweep.execute import DataKey, Job, Outcome, execute, load_data

if TYPE_CHECKING:
    from tstar.data import DataSet

_PATIENCE = 20.0  # seconds without an answer after which the cluster is gone
_LOOK = 5.0  # seconds in which a head that is there takes a connection


class RayEngine:
    """One CPU (or one GPU, or a share of one) per run.

    Args:
        workers: runs at once; as many as the cluster has CPUs (GPUs) by default.
        address: of a running cluster; without it Ray starts here.
        device: ``"cpu"``, ``"cuda"``, which a cluster without GPUs refuses, or ``"auto"``: GPUs where it has any.
        gpus: GPUs per run, such as 0.25; 0 trains on the CPU. By default 1 where runs are on GPUs.
        retries: how often Ray itself repeats a run whose worker died.
    """

    def __init__(
        self,
        workers: int | None = None,
        address: str | None = None,
        device: str = "auto",
        *,
        gpus: float | None = None,
        retries: int = 3,
    ) -> None:
        _check_request(device, gpus)
        self._ray: Any = require("ray", "ray")
        self._task: Any = None
        self._data: dict[DataKey, Any] = {}
        self._jobs: dict[Any, str] = {}
        self._answered, self._alive = time.monotonic(), True
        self._owner = not self._ray.is_initialized()
        if self._owner:
            self._start(workers, address)
        self._gcs = str(self._ray.get_runtime_context().gcs_address)
        if not self._owner and address not in (None, "auto", self._gcs):
            raise TstarError(
                f"Ray is already connected to {self._gcs} in this process, got the address {address!r}; call "
                "ray.shutdown() first, or leave the address out."
            )
        resources = self._ray.cluster_resources()
        there = resources.get("GPU", 0)
        share = gpus if gpus is not None else float({"cpu": 0, "cuda": 1}.get(device, there > 0))
        if share and not there:
            self.close()
            raise TstarError(
                f"The Ray cluster has no GPU, but each run was to have {share:g} of one; use device cpu or auto, "
                "without gpus_per_run."
            )
        per_run = {"num_gpus": share} if share else {"num_cpus": 1}
        room = there / share if share else resources.get("CPU", 1)
        self.slots = workers or max(1, int(room))
        self._device = "cuda" if share else "cpu"
        self._task = self._ray.remote(max_retries=retries, **per_run)(_remote)

    def _start(self, workers: int | None, address: str | None) -> None:
        if address is not None and not _reachable(address):
            raise TstarError(
                f"No Ray cluster answers at {address!r}; check the address, the port and the firewall."
            )
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        try:
            if address is None:
                # In this thread: Ray's processes end with the thread that started them.
                self._ray.init(num_cpus=workers, include_dashboard=False, **quiet)
            else:
                _in_time(lambda: self._ray.init(address=address, **quiet), _PATIENCE)
        except (ConnectionError, TimeoutError, RuntimeError, ValueError) as error:
            raise TstarError(
                f"Ray could not be reached at {address or 'this machine'}: {error}"
            ) from error

    def submit(self, job: Job) -> None:
        self._there()
        key = DataKey.of(job.spec.resolved(job.places))
        if key not in self._data:
            # Shared through Ray's object store, so that the nodes need no copy of the files.
            self._data[key] = self._ask(
                lambda: self._ray.put(load_data(key, job.data_root, job.shared))
            )
        job = replace(job, device=self._device, shared=None)
        reference = self._ask(lambda: self._task.remote(job, self._data[key]))
        self._jobs[reference] = job.spec.key

    def collect(self, timeout: float) -> list[Outcome]:
        if not self._jobs:
            return []
        if not self._there():
            time.sleep(timeout)
            return []
        waited: tuple[list[Any], list[Any]] = self._ask(
            lambda: self._ray.wait(list(self._jobs), num_returns=1, timeout=timeout)
        )
        return [self._outcome(reference) for reference in waited[0]]

    def _outcome(self, reference: Any) -> Outcome:
        key = self._jobs.pop(reference)
        try:
            outcome: Outcome = self._ray.get(reference, timeout=_PATIENCE)
        except self._ray.exceptions.RayError as error:
            return Outcome(key, "failed", {"error": f"Ray: {error}"}, lost=True)
        return outcome

    def _there(self) -> bool:
        """Whether the cluster's head answers; an error when it has not for a while.

        Asked before Ray is: its own calls hold the interpreter while they look for a dead head, and end the
        program after a minute.
        """
        if not self._ray.is_initialized():
            raise self._gone("Ray was shut down in this process")
        now = time.monotonic()
        if _reachable(self._gcs):
            self._answered = now
        elif now - self._answered > _PATIENCE:
            raise self._gone("its head no longer answers")
        return self._answered == now

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            return _in_time(question, _PATIENCE)
        except TstarError:
            raise
        except Exception as error:  # after ray.shutdown(), or with a dead node, it may be anything
            raise self._gone(str(error) or type(error).__name__) from error

    def _gone(self, why: str) -> TstarError:
        self._alive = False
        return TstarError(
            f"The Ray cluster is gone: {why}; start Ray again, then the same sweep: it goes on where it was."
        )

    def close(self) -> None:
        jobs, self._jobs = list(self._jobs), {}
        if not self._alive:  # a dead cluster takes no orders
            return

        def stop() -> None:
            if self._ray.is_initialized():
                for reference in jobs:
                    self._ray.cancel(reference, force=True)
                if self._owner:
                    self._ray.shutdown()

        try:
            _in_time(stop, _LOOK * 2)
        except Exception:
            return


def _check_request(device: str, gpus: float | None) -> None:
    if device not in ("auto", "cpu", "cuda"):
        raise TstarError(
            f"On Ray, which shares out the GPUs, device must be auto, cpu or cuda, got {device!r}."
        )
    if gpus is not None and not (0 <= gpus <= 1 or (gpus < math.inf and gpus == int(gpus) > 0)):
        raise TstarError(
            f"gpus_per_run must be a share of a GPU or a whole number of them, got {gpus!r}."
        )
    if gpus is not None and (device, gpus > 0) in (("cpu", True), ("cuda", False)):
        raise TstarError(
            f"device={device!r} and gpus_per_run={gpus:g} contradict each other; leave one out."
        )


def _reachable(address: str) -> bool:
    """Whether something listens at HOST:PORT; ``auto`` and ``local`` are Ray's to find."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        return True
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_LOOK).close()
    except (OSError, OverflowError):
        return False
    return True


def _in_time(work: Callable[[], Any], seconds: float) -> Any:
    """What ``work`` returns, or a TimeoutError: some of Ray's calls wait for a dead cluster forever."""
    result: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not result:
        raise TimeoutError(f"no answer in {seconds:.0f} seconds")
    return result[0]


def _remote(job: Job, dataset: DataSet) -> Outcome:
    import torch

    torch.set_num_threads(1)
    return execute(job, dataset)
