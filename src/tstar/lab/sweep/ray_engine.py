"""Runs on a Ray cluster, or on a Ray instance that is started here.

Results come back to the one process that owns the store. If the cluster's head dies, Ray ends that
process: what was stored stays, and the same sweep on a new cluster goes on.
"""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from typing import Any

import torch

from tstar.errors import TstarError
from tstar.imports import require
from tstar.lab.data import DataSet
from tstar.lab.sweep.execute import Job, Outcome, execute
from tstar.lab.sweep.materials import DataKey, load_data
from tstar.lab.training.parts import limit_memory

_LOOK = 5.0  # seconds in which a head takes a connection; Ray itself tries for minutes
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
            self._data[key] = self._ray.put(load_data(key, job.data_root, job.shared))
        job = replace(job, device=self._device, shared=None)
        self._jobs[self._task.remote(job, self._data[key], self._share)] = job.spec.key

    def collect(self, timeout: float) -> list[Outcome]:
        if not self._jobs:
            return []
        ended, _ = self._ray.wait(list(self._jobs), num_returns=1, timeout=timeout)
        outcomes = []
        for reference in ended:
            key = self._jobs.pop(reference)
            try:
                outcomes.append(self._ray.get(reference))
            except self._ray.exceptions.LocalRayletDiedError as error:
                raise TstarError(
                    "The Ray cluster is gone: its process on this machine, the raylet, has died; "
                    "start Ray again, then the same sweep."
                ) from error
            except self._ray.exceptions.RayError as error:
                outcomes.append(Outcome(key, "requeue", {"error": f"Ray: {error}"}))
        return outcomes

    def forget(self, data: DataKey) -> None:
        """Ray drops an object when nobody refers to it any more."""
        self._data.pop(data, None)

    def close(self) -> None:
        jobs, self._jobs, self._data = list(self._jobs), {}, {}
        # A dead cluster takes no orders.
        if self._ray.is_initialized() and _reachable(self._gcs):
            for reference in jobs:
                self._ray.cancel(reference, force=True)
            if self._owner:
                self._ray.shutdown()


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
