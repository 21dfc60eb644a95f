"""Runs on a Ray cluster, or on a Ray instance that is started here.

Ray places the tasks, moves the data and starts lost workers again; the results come back to the
one process that owns the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tstar.errors import require
from tstar.sweep.execute import DataKey, Job, Outcome, execute, load_data

if TYPE_CHECKING:
    from tstar.data import DataSet


class RayEngine:
    """One CPU (or one GPU, or a share of one) a run.

    Args:
        workers: runs at once; as many as the cluster has CPUs (GPUs) by default.
        address: of a running cluster; without it Ray starts here.
        gpus: GPUs a run, such as 0.25; 0 trains on the CPU. By default 1 where the cluster has any.
        retries: how often Ray itself repeats a run whose worker died.
    """

    def __init__(
        self,
        workers: int | None = None,
        address: str | None = None,
        *,
        gpus: float | None = None,
        retries: int = 3,
    ) -> None:
        self._ray: Any = require("ray", "ray")
        self._owner = not self._ray.is_initialized()
        if self._owner:
            here: dict[str, Any] = (
                {} if address else {"num_cpus": workers, "include_dashboard": False}
            )
            self._ray.init(address=address, log_to_driver=False, logging_level="error", **here)
        resources = self._ray.cluster_resources()
        share = gpus if gpus is not None else float(resources.get("GPU", 0) > 0)
        per_run = {"num_gpus": share} if share else {"num_cpus": 1}
        room = resources.get("GPU", 0) / share if share else resources.get("CPU", 1)
        self.slots = workers or max(1, int(room))
        self._device = "cuda" if share else "cpu"
        self._task: Any = self._ray.remote(max_retries=retries, **per_run)(_remote)
        self._data: dict[DataKey, Any] = {}
        self._jobs: dict[Any, str] = {}

    def submit(self, job: Job) -> None:
        key = DataKey.of(job.spec)
        if key not in self._data:
            # Shared through Ray's object store, so that the nodes need no copy of the files.
            self._data[key] = self._ray.put(load_data(key, job.data_root))
        job = Job(job.spec, job.data_root, job.csg, job.teacher, self._device)
        self._jobs[self._task.remote(job, self._data[key])] = job.spec.key

    def collect(self, timeout: float) -> list[Outcome]:
        if not self._jobs:
            return []
        ready, _ = self._ray.wait(list(self._jobs), num_returns=1, timeout=timeout)
        return [self._outcome(reference) for reference in ready]

    def _outcome(self, reference: Any) -> Outcome:
        key = self._jobs.pop(reference)
        try:
            outcome: Outcome = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return Outcome(key, "failed", {"error": f"Ray: {error}"}, lost=True)
        return outcome

    def close(self) -> None:
        for reference in self._jobs:
            self._ray.cancel(reference, force=True)
        self._jobs.clear()
        if self._owner:
            self._ray.shutdown()


def _remote(job: Job, dataset: DataSet) -> Outcome:
    import torch

    torch.set_num_threads(1)
    return execute(job, dataset)
