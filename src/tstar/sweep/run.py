"""A sweep: the grid minus what is done, on an engine, into a store."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tstar.errors import TstarError
from tstar.own import failed
from tstar.sweep.columns import FINAL, opened
from tstar.sweep.engine import Engine
from tstar.sweep.execute import Job, Outcome
from tstar.sweep.plan import Todo
from tstar.sweep.provenance import commit
from tstar.sweep.spec import Spec
from tstar.sweep.store import Store

OnRun = Callable[[Mapping[str, Any]], None]
ATTEMPTS = 3  # how often a run whose worker died is tried in one sweep
_POLL = 0.5


@dataclass
class Tally:
    """How a sweep stands. ``theirs`` are runs that another sweep on the same store did meanwhile."""

    total: int
    before: int = 0
    done: int = 0
    diverged: int = 0
    failed: int = 0
    retried: int = 0
    theirs: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def finished(self) -> int:
        return self.before + self.done + self.diverged + self.failed + self.theirs

    @property
    def per_hour(self) -> float:
        seconds = max(time.monotonic() - self.started, 1e-9)
        return 3600 * (self.done + self.diverged + self.failed) / seconds

    @property
    def seconds_left(self) -> float | None:
        rate = self.per_hour
        return 3600 * (self.total - self.finished) / rate if rate else None

    def __str__(self) -> str:
        parts = [f"{self.done} done", f"{self.diverged} diverged", f"{self.failed} failed"]
        parts += [f"{self.theirs} by another sweep"] if self.theirs else []
        parts += [f"{self.retried} started again"] if self.retried else []
        return f"{self.finished}/{self.total}: {', '.join(parts)}, {self.before} before"


def run_sweep(
    plan: Todo,
    store: Store,
    engine: Engine,
    *,
    data_root: str | None = None,
    folder: str | None = None,
    study: tuple[str, str] | None = None,
    part: bool = False,
    update: Callable[[Tally], None] = lambda tally: None,
    on_run: OnRun | None = None,
    max_runs: int | None = None,
    checkpoint: float | None = None,
) -> Tally:
    """Do what is missing. Stops cleanly on Ctrl-C: results stay, runs under way are given back.

    Args:
        folder: where the workers find data that they share.
        study: name and hash, kept with the runs. part: the plan has only some of the study's runs.
        update: called with the tally now and then. on_run: called with the row of each run that was stored.
        max_runs: end the sweep after so many results (runs under way are given back).
        checkpoint: minutes between the checkpoints of a run, from which a killed one goes on.
    """
    waiting = deque(plan.todo)
    tally = Tally(len(plan.specs), before=len(plan.specs) - len(waiting))
    submitted: dict[str, Spec] = {}
    losses: dict[str, int] = {}
    failed_here: set[str] = set()
    beaten = time.monotonic()
    for spec in plan.specs:
        if plan.status.get(spec.key) == "missing":
            store.forget(spec.key)  # a teacher whose weights are gone
    if study is not None:
        keys = [spec.key for spec in plan.specs]
        store.join(keys, study)
        store.leave(keys, study, part=part)

    def job(spec: Spec, teacher: bytes | None) -> Job:
        csg = plan.csg.get(spec.data_checksum or "") if spec.csg is None else spec.csg
        file = None if checkpoint is None else (str(store.checkpoint_path(spec.key)), checkpoint)
        return Job(
            spec, data_root, csg, teacher, places=plan.places, shared=folder, checkpoint=file
        )

    try:
        while waiting or submitted:
            # Fill the free slots. A run that someone else holds goes to the end of the queue.
            blocked = 0
            while waiting and len(submitted) < engine.slots and blocked < len(waiting):
                spec = waiting.popleft()
                state, teacher = _take(spec, plan, store, failed_here, study)
                if state == "ours":
                    engine.submit(job(spec, teacher))
                    submitted[spec.key] = spec
                elif state == "wait":
                    waiting.append(spec)
                    blocked += 1
                elif state == "failed":
                    tally.failed += 1
                else:
                    tally.theirs += 1
            update(tally)
            if not submitted:
                if waiting:  # all that is left is in other hands: look again soon
                    time.sleep(_POLL)
                continue
            told: list[str] = []
            for outcome in engine.collect(_POLL):
                spec = submitted.pop(outcome.key)
                stored = _finish(store, outcome)
                if outcome.lost and losses.get(outcome.key, 0) + 1 < ATTEMPTS:
                    losses[outcome.key] = losses.get(outcome.key, 0) + 1
                    tally.retried += 1
                    waiting.appendleft(spec)
                elif not stored:  # another sweep has taken it over: theirs counts
                    waiting.append(spec)
                else:
                    setattr(tally, outcome.status, getattr(tally, outcome.status) + 1)
                    if outcome.status == "failed":
                        failed_here.add(outcome.key)
                    told.append(outcome.key)
            # After all of them are stored: a callback that raises ends the sweep.
            if on_run is not None:
                for key in told:
                    _tell(on_run, store, key)
            if time.monotonic() - beaten > min(10.0, store.lease / 4):
                store.beat()
                beaten = time.monotonic()
            if max_runs is not None and tally.done + tally.diverged + tally.failed >= max_runs:
                break
    finally:
        engine.close()
        store.release()
    update(tally)
    return tally


def _take(
    spec: Spec, plan: Todo, store: Store, failed_here: set[str], study: tuple[str, str] | None
) -> tuple[str, bytes | None]:
    """Claim a run: ``"ours"``, ``"wait"``, ``"failed"``, or how somebody else ended it; its teacher's weights."""
    weights = None
    teacher = plan.teacher_of.get(spec.key)
    if teacher is not None:
        row = store.get(teacher)
        state = None if row is None else row["status"]
        if state == "diverged" or (state == "failed" and teacher in failed_here):
            if not store.claim(spec, study=study):
                return "wait", None
            error = f"Its teacher, the run {teacher}, {state}: see tstar runs show {store.path} {teacher}."
            store.finish(spec.key, "failed", {"error": error})
            return "failed", None
        if state != "done":
            return "wait", None
        try:
            weights = store.weights_path(teacher).read_bytes()
        except OSError as error:
            raise TstarError(
                f"The teacher's weights could not be read: {error}; start the sweep again, which trains "
                "the teacher again."
            ) from error
    if store.claim(spec, retry_failed=spec.key not in failed_here, study=study):
        return "ours", weights
    row = store.get(spec.key)
    if row is not None and row["status"] in (*FINAL, "failed"):
        return str(row["status"]), None
    return "wait", None


def _finish(store: Store, outcome: Outcome) -> bool:
    """Whether the result was stored."""
    # Weights first: a teacher that is done has its weights.
    if outcome.weights is not None:
        store.save_weights(outcome.key, outcome.weights)
    return store.finish(outcome.key, outcome.status, outcome.values | {"commit": commit()})


def _tell(on_run: OnRun, store: Store, key: str) -> None:
    row = opened(store.get(key) or {})
    try:
        on_run(row)
    except Exception as error:
        name = getattr(on_run, "__qualname__", type(on_run).__name__)
        raise failed(f"The callback {name}", "failed", error) from error
