"""A sweep: the grid minus what is done, on an engine, into a store."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from tstar.errors import TstarError
from tstar.sweep.engine import Engine
from tstar.sweep.execute import Job, Outcome
from tstar.sweep.plan import Plan
from tstar.sweep.provenance import commit
from tstar.sweep.spec import Spec
from tstar.sweep.store import FINAL, Store

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
    running: int = 0
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
    plan: Plan,
    store: Store,
    engine: Engine,
    *,
    data_root: str | None = None,
    update: Callable[[Tally], None] = lambda tally: None,
    max_runs: int | None = None,
) -> Tally:
    """Do what is missing. Stops cleanly on Ctrl-C: results stay, runs under way are given back.

    ``max_runs`` ends the sweep after so many results (those under way are given back).
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
    try:
        while waiting or submitted:
            # Fill the free slots. A run that someone else holds goes to the end of the queue.
            blocked = 0
            while waiting and len(submitted) < engine.slots and blocked < len(waiting):
                spec = waiting.popleft()
                state = _take(spec, plan, store, failed_here)
                if isinstance(state, Job):
                    engine.submit(Job(state.spec, data_root, state.csg, state.teacher))
                    submitted[spec.key] = spec
                elif state == "wait":
                    waiting.append(spec)
                    blocked += 1
                elif state == "failed":
                    tally.failed += 1
                else:
                    tally.theirs += 1
            tally.running = len(submitted)
            update(tally)
            if not submitted:
                if waiting:  # all that is left is in other hands: look again soon
                    time.sleep(_POLL)
                continue
            for outcome in engine.collect(_POLL):
                spec = submitted.pop(outcome.key)
                again = outcome.lost and losses.get(outcome.key, 0) + 1 < ATTEMPTS
                if again:
                    losses[outcome.key] = losses.get(outcome.key, 0) + 1
                    tally.retried += 1
                    _finish(store, outcome)
                    waiting.appendleft(spec)
                else:
                    _finish(store, outcome)
                    _count(tally, outcome)
                    if outcome.status == "failed":
                        failed_here.add(outcome.key)
            if time.monotonic() - beaten > min(10.0, store.lease / 4):
                store.beat()
                beaten = time.monotonic()
            if max_runs is not None and tally.done + tally.diverged + tally.failed >= max_runs:
                break
    finally:
        engine.close()
        store.release()
    tally.running = 0
    update(tally)
    return tally


def _take(spec: Spec, plan: Plan, store: Store, failed_here: set[str]) -> Job | str:
    """Claim a run: a job, or ``"wait"``, ``"failed"``, or the state that somebody else brought it to."""
    teacher_weights = None
    teacher = plan.teacher_of.get(spec.key)
    if teacher is not None:
        row = store.get(teacher)
        state = None if row is None else row["status"]
        if state == "diverged" or (state == "failed" and teacher in failed_here):
            if not store.claim(spec):
                return "wait"
            error = f"Its teacher, the run {teacher}, {state}: see tstar runs show {teacher}."
            store.finish(spec.key, "failed", {"error": error})
            return "failed"
        if state != "done":
            return "wait"
        try:
            teacher_weights = store.weights_path(teacher).read_bytes()
        except OSError as error:
            raise TstarError(
                f"The teacher's weights could not be read: {error}; start the sweep again, which trains "
                "the teacher again."
            ) from error
    if store.claim(spec, retry_failed=spec.key not in failed_here):
        return Job(spec, csg=plan.csg.get(spec.data_checksum or ""), teacher=teacher_weights)
    row = store.get(spec.key)
    if row is not None and row["status"] in FINAL:
        return str(row["status"])
    if row is not None and row["status"] == "failed":
        return "failed"
    return "wait"


def _finish(store: Store, outcome: Outcome) -> None:
    # Weights first: a teacher that is done has its weights.
    if outcome.weights is not None:
        store.save_weights(outcome.key, outcome.weights)
    store.finish(outcome.key, outcome.status, outcome.values | {"commit": commit()})


def _count(tally: Tally, outcome: Outcome) -> None:
    setattr(tally, outcome.status, getattr(tally, outcome.status) + 1)
