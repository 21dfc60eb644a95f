"""A sweep: the grid minus what is done, on an engine, into a store."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tstar.errors import TstarError, guarded, positive, whole
from tstar.lab import own
from tstar.lab.sweep import shared
from tstar.lab.sweep.engine import Engine, make_engine, refuse_workers
from tstar.lab.sweep.execute import Outcome
from tstar.lab.sweep.materials import DataKey
from tstar.lab.sweep.plan import Todo, make_plan
from tstar.lab.sweep.provenance import commit
from tstar.lab.sweep.spec import FINAL, Spec, opened
from tstar.lab.sweep.store import Store, owned, real_path
from tstar.lab.sweep.study import Study, load_study, script_study

OnRun = Callable[[Mapping[str, Any]], None]
ATTEMPTS = 3  # how often a run whose worker died is tried in one sweep
_POLL = 0.5


@dataclass
class Tally:
    """How a sweep stands. ``requeued`` runs ran out of memory or lost their worker."""

    total: int
    before: int = 0
    done: int = 0
    diverged: int = 0
    failed: int = 0
    requeued: int = 0
    retried: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def ended(self) -> int:
        """The results of this sweep."""
        return self.done + self.diverged + self.failed

    @property
    def finished(self) -> int:
        return self.before + self.ended

    @property
    def seconds_left(self) -> float | None:
        """By the time that a result has taken on average; ``None`` before the first."""
        spent = time.monotonic() - self.started
        return (self.total - self.finished) * spent / self.ended if self.ended else None

    def __str__(self) -> str:
        parts = [f"{self.done} done", f"{self.diverged} diverged", f"{self.failed} failed"]
        parts += [f"{self.requeued} to be tried again"] if self.requeued else []
        parts += [f"{self.retried} started again"] if self.retried else []
        return f"{self.finished}/{self.total}: {', '.join(parts)}, {self.before} before"


def run_study(
    study: Study | str | Path | Mapping[str, Any] | Sequence[Study | str | Path],
    store: str | Path,
    *,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    data_root: str | None = None,
    device: str = "auto",
    gpus_per_run: float | None = None,
    checkpoint: float | None = None,
    update: Callable[[Tally], None] = lambda tally: None,
    on_run: OnRun | None = None,
    say: Callable[[str], None] = lambda text: None,
    max_runs: int | None = None,
    part: tuple[int, int] | None = None,
) -> Tally:
    """Do every run of a study that the store does not have yet.

    Args:
        study: a study, its TOML file, or its tables, in which your own parts may be functions, and
            a data set a ``DataSet`` or the arrays x_train, y_train, x_test and y_test; or several
            studies, whose runs are one queue.
        store: the SQLite file of results; made if it does not exist. One sweep at a time owns it.
        engine: ``"local"`` (processes of this machine) or ``"ray"``.
        workers: runs at once; by default one per GPU, or one per core.
        address: the address of a Ray cluster.
        data_root: the folder below which data sets are found; ``TSTAR_DATA`` by default.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, …; an error if there is none.
        gpus_per_run: a share of a GPU and of its memory for each run, such as 0.25: four at once.
        checkpoint: minutes between the checkpoints of a run, from which a killed one goes on.
        update: called with the tally as the sweep goes on.
        on_run: called with each run that was stored, as a mapping of the store's columns.
        say: called with a line of text now and then.
        max_runs: stop after so many results.
        part: (i, n) does every n-th run from the i-th on, for jobs that share no store.
    """
    refuse_workers()
    for what, value in (("workers", workers), ("max_runs", max_runs)):
        if value is not None:
            whole(what, value, least=1)
    if checkpoint is not None:
        positive("checkpoint", checkpoint)
    folder = Path(f"{real_path(store)}.data")  # of what the workers share
    with guarded("run_study() failed before its first run"):
        given = study if isinstance(study, list | tuple) else [study]
        studies = [_read(one) for one in given]
        parts = studies if part is None else [one.part(*part) for one in studies]
        joined, asked = _join(parts), defaultdict[Spec, dict[str, str]](dict)
        for whole_study, mine in zip(studies, parts, strict=True):
            for spec in mine.specs:
                asked[spec][whole_study.name] = whole_study.hash
        root = None if data_root is None else os.fspath(data_root)
        made = make_engine(engine, workers, device, gpus_per_run, address)
    with (
        closing(made),
        owned(store),
        Store(store, create=True) as opened,
        shared.shared_folder(folder),
        closing(made) as chosen,  # its workers stop before another sweep may own the store
    ):
        opened.clear_up()
        for name, size in {(spec.dataset, spec.size) for spec in joined.specs}:
            if name in joined.data:
                shared.save_given(joined.data[name], folder, name, size)
        plan = make_plan(joined, opened, data_root=root, say=say, folder=str(folder), asked=asked)
        how: dict[str, Any] = {"update": update, "on_run": on_run, "say": say}
        how |= {"part": part is not None, "max_runs": max_runs, "checkpoint": checkpoint}
        return run_sweep(plan, opened, chosen, **how)


def _read(study: Any) -> Study:
    """A study from whatever describes it."""
    if isinstance(study, Study):
        return study
    return script_study(study) if isinstance(study, Mapping) else load_study(study)


def _join(studies: Sequence[Study]) -> Study:
    """One study of the runs of several, each once."""
    if not studies:
        raise TstarError("At least one study must be given.")
    places: dict[str, dict[str, str]] = {}
    for study in studies:
        for field_name, known in study.places.items():
            for name, place in known.items():
                if places.setdefault(field_name, {}).setdefault(name, place) != place:
                    raise TstarError(
                        f"{name!r} must be the same part in all studies of one sweep, but is in "
                        f"two folders; sweep them one after the other."
                    )
    specs = dict.fromkeys(spec for study in studies for spec in study.specs)
    data = {name: given for study in studies for name, given in study.data.items()}
    csg = any(study.csg for study in studies)
    return replace(studies[0], specs=tuple(specs), csg=csg, places=places, data=data)


def run_sweep(
    plan: Todo,
    store: Store,
    engine: Engine,
    *,
    part: bool = False,
    update: Callable[[Tally], None] = lambda tally: None,
    on_run: OnRun | None = None,
    say: Callable[[str], None] = lambda text: None,
    max_runs: int | None = None,
    checkpoint: float | None = None,
) -> Tally:
    """Do what is missing. A run is stored when it ends; runs under way are given up at a stop.

    See :func:`run_study`; a ``part`` of a study leaves its other runs as they are.
    """
    waiting = deque(plan.todo)
    tally = Tally(len(plan.specs), before=len(plan.specs) - len(waiting))
    ended = {key: status for key, status in plan.status.items() if status in FINAL}
    submitted: dict[str, Spec] = {}
    tries = Counter[str]()
    data = Counter(DataKey.of(spec.resolved(plan.places)) for spec in waiting)
    ended_runs: list[tuple[Spec, Outcome]] = []  # that are not stored yet
    for study in {study for names in plan.asked.values() for study in names.items()}:
        asked = (key for key, names in plan.asked.items() if study in names.items())
        store.ask(asked, study, part=part)

    def end(spec: Spec, outcome: Outcome) -> None:
        status = ended[spec.key] = outcome.status
        key = DataKey.of(spec.resolved(plan.places))
        data[key] -= 1
        if not data[key]:
            engine.forget(key)
        if status == "requeue":
            tally.requeued += 1
            return
        if outcome.weights is not None:  # first: a teacher that is done has its weights
            store.save_weights(spec.key, outcome.weights)
        ended_runs.append((spec, outcome))
        setattr(tally, status, getattr(tally, status) + 1)

    try:
        while (waiting or submitted) and (max_runs is None or tally.ended < max_runs):
            for _ in range(len(waiting)):
                if len(submitted) >= engine.slots:
                    break
                spec = waiting.popleft()
                teacher = plan.teacher_of.get(spec.key)
                state = "done" if teacher is None else ended.get(teacher, "waiting")
                if state == "done":
                    engine.submit(plan.job(spec, store, checkpoint))
                    submitted[spec.key] = spec
                elif state == "waiting":
                    waiting.append(spec)
                else:
                    why = f"Its teacher, the run {teacher}, ended as {state}; see tstar runs show."
                    status = "requeue" if state == "requeue" else "failed"
                    end(spec, Outcome(spec.key, status, {"error": why}))
            update(tally)
            _store(ended_runs, plan, store, on_run)  # while the workers are busy
            for outcome in engine.collect(_POLL) if submitted else []:
                spec = submitted.pop(outcome.key)
                if outcome.status == "requeue":
                    say(f"{spec}: {outcome.values['error']}")
                    tries[spec.key] += 1
                    if tries[spec.key] < ATTEMPTS:
                        tally.retried += 1
                        waiting.appendleft(spec)
                        continue
                end(spec, outcome)
    finally:
        _store(ended_runs, plan, store, on_run)
    update(tally)
    return tally


def _store(
    ended: list[tuple[Spec, Outcome]], plan: Todo, store: Store, on_run: OnRun | None
) -> None:
    """Commit the runs that have ended together: a commit waits for the disk (20 ms).

    They leave the list once they are stored, so that an interrupt loses none.
    """
    if not ended:
        return
    rows, code = [*ended], commit()
    with store.together():
        for spec, outcome in rows:
            values = outcome.values | {"commit": code}
            store.put(spec, outcome.status, values, studies=plan.asked.get(spec.key))
    ended.clear()
    # After all of them are stored: a callback that raises ends the sweep.
    if on_run is None:
        return
    for spec, _ in rows:
        name = getattr(on_run, "__qualname__", type(on_run).__name__)
        own.call(f"The callback {name}", on_run, opened(store.get(spec.key) or {}))
