"""Runs on a Ray cluster, or on a Ray instance that is started here.

Results come back to the one process that owns the store. Slow is not dead: nothing that loads,
moves or trains has a deadline. A cluster whose head has taken no connection for a while is gone.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from tstar.errors import TstarError
from tstar.imports import require
from tstar.lab.data import DataSet
from tstar.lab.sweep.execute import Job, Outcome, execute
from tstar.lab.sweep.materials import DataKey, load_data
from tstar.lab.training.parts import limit_memory

_PATIENCE = 20.0  # seconds without a connection after which the cluster is gone
_LOOK = 5.0  # seconds in which a head that is there takes one
_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # at 0, Ray listens on 127.0.0.1 and nowhere else


class RayEngine:
    """One CPU, or ``gpus`` GPUs (or a share), per run; without an ``address`` Ray starts here."""

    def __init__(
        self,
        workers: int | None = None,
        address: str | None = None,
        device: str = "auto",
        gpus: float | None = None,
    ) -> None:
        if device not in ("auto", "cpu", "cuda"):
            raise TstarError(f"On Ray, device must be auto, cpu or cuda, got {device!r}.")
        if gpus is not None and not (0 <= gpus <= 1 or (gpus > 1 and gpus % 1 == 0)):
            raise TstarError(f"gpus_per_run must be a share or a whole number, got {gpus!r}.")
        if gpus is not None and (device, gpus > 0) in (("cpu", True), ("cuda", False)):
            raise TstarError(f"device={device!r} and gpus_per_run={gpus:g} contradict each other.")
        if address is None:  # a Ray of this machine alone: read when Ray is imported
            os.environ.setdefault(_LOOPBACK, "0")
        self._ray: Any = require("ray", "all")
        self._data: dict[DataKey, Any] = {}
        self._jobs: dict[Any, str] = {}
        self._answered = time.monotonic()
        self._owner = not self._ray.is_initialized()
        if self._owner:
            if address is not None and not _reachable(address):
                raise TstarError(f"No Ray cluster answers at {address!r}; check the address.")
            here = {"num_cpus": workers, "include_dashboard": False} if address is None else {}
            where = address or "local"  # not a cluster that happens to run on this machine
            self._ray.init(address=where, log_to_driver=False, logging_level="error", **here)
        self._gcs = str(self._ray.get_runtime_context().gcs_address)
        resources = self._ray.cluster_resources()
        there = resources.get("GPU", 0)
        share = gpus if gpus is not None else float({"cpu": 0, "cuda": 1}.get(device, there > 0))
        if share and not there:
            self.close()
            raise TstarError("The Ray cluster has no GPU; use device cpu, without gpus_per_run.")
        per_run = {"num_gpus": share} if share else {"num_cpus": 1}
        room = there / share if share else resources.get("CPU", 1)
        self.slots = workers or max(1, int(room))
        self._device, self._share = ("cuda" if share else "cpu"), share
        self._task: Any = self._ray.remote(max_retries=3, **per_run)(_remote)

    def submit(self, job: Job) -> None:
        key = DataKey.of(job.spec.resolved(job.places))
        if key not in self._data:
            # Shared through Ray's object store, so that the nodes need no copy of the files.
            loaded = load_data(key, job.data_root, job.shared)
            self._data[key] = self._ask(lambda: self._ray.put(loaded))
        job = replace(job, device=self._device, shared=None)
        reference = self._ask(lambda: self._task.remote(job, self._data[key], self._share))
        self._jobs[reference] = job.spec.key

    def collect(self, timeout: float) -> list[Outcome]:
        if not self._jobs:
            return []
        if not self._there():
            time.sleep(timeout)
            return []
        ended, _ = self._ask(
            lambda: self._ray.wait(list(self._jobs), num_returns=1, timeout=timeout)
        )
        outcomes = []
        for reference in ended:
            key = self._jobs.pop(reference)
            try:
                outcomes.append(self._ray.get(reference))
            except self._ray.exceptions.LocalRayletDiedError as error:
                raise _gone("its process on this machine, the raylet, has died") from error
            except self._ray.exceptions.RayError as error:
                outcomes.append(Outcome(key, "requeue", {"error": f"Ray: {error}"}))
        return outcomes

    def forget(self, data: DataKey) -> None:
        """Ray drops an object when nobody refers to it any more."""
        self._data.pop(data, None)

    def _there(self) -> bool:
        """Whether the cluster's head answers; an error when it has not for a while.

        Asked before Ray is: its own calls hang on a dead head, and end the program after a minute.
        """
        if not self._ray.is_initialized():
            raise _gone("Ray was shut down in this process")
        now = time.monotonic()
        if _reachable(self._gcs):
            self._answered = now
        elif now - self._answered > _PATIENCE:
            raise _gone("its head no longer answers")
        return self._answered == now

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            while not self._there():
                time.sleep(1)
            return question()
        except TstarError:
            raise
        except Exception as error:  # after ray.shutdown(), or with a dead node, it may be anything
            raise _gone(str(error) or type(error).__name__) from error

    def close(self) -> None:
        jobs, self._jobs, self._data = list(self._jobs), {}, {}
        # A dead cluster takes no orders.
        if self._ray.is_initialized() and _reachable(self._gcs):
            for reference in jobs:
                self._ray.cancel(reference, force=True)
            if self._owner:
                self._ray.shutdown()


def _gone(why: str) -> TstarError:
    return TstarError(f"The Ray cluster is gone: {why}; start Ray again, then the same sweep.")


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


def _remote(job: Job, dataset: DataSet, share: float) -> Outcome:
    torch.set_num_threads(1)
    limit_memory(job.device, share)
    return execute(job, dataset)
