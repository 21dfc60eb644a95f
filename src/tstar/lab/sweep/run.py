"""A sweep: the grid minus what is done, on an engine, into a store."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tstar.checks import positive, whole
from tstar.lab import own
from tstar.lab.sweep import shared
from tstar.lab.sweep.columns import FINAL, opened
from tstar.lab.sweep.engine import Engine, make_engine, refuse_workers
from tstar.lab.sweep.execute import Outcome
from tstar.lab.sweep.materials import DataKey
from tstar.lab.sweep.plan import Todo, make_plan
from tstar.lab.sweep.provenance import commit
from tstar.lab.sweep.spec import Spec
from tstar.lab.sweep.store import Store, owned
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
    def per_hour(self) -> float:
        return 3600 * self.ended / max(time.monotonic() - self.started, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        rate = self.per_hour
        return 3600 * (self.total - self.finished) / rate if rate else None

    def __str__(self) -> str:
        parts = [f"{self.done} done", f"{self.diverged} diverged", f"{self.failed} failed"]
        parts += [f"{self.requeued} to be tried again"] if self.requeued else []
        parts += [f"{self.retried} started again"] if self.retried else []
        return f"{self.finished}/{self.total}: {', '.join(parts)}, {self.before} before"


def run_study(
    study: Study | str | Path | Mapping[str, Any],
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
            a data set a ``DataSet`` or the arrays x_train, y_train, x_test and y_test.
        store: the SQLite file of results; made if it does not exist. One sweep at a time owns it.
        engine: ``"local"`` (processes of this machine) or ``"ray"``.
        workers: runs at once; by default one per GPU, or one per core.
        address: the address of a Ray cluster.
        data_root: the folder below which data sets are found; ``TSTAR_DATA`` by default.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, …; an error if there is none.
        gpus_per_run: a share of a GPU for each run, such as 0.25: four runs at once on each.
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
    folder = Path(f"{store}.data")  # of what the workers share
    if not isinstance(study, Study):
        study = script_study(study) if isinstance(study, Mapping) else load_study(study)
    mine = study if part is None else study.part(*part)
    with (
        closing(make_engine(engine, workers, device, gpus_per_run, address)) as chosen,
        owned(store),
        Store(store, create=True) as opened,
        shared.made(folder),
    ):
        for name, size in {(spec.dataset, spec.size) for spec in mine.specs} if mine.data else ():
            if name in mine.data:
                shared.save_given(mine.data[name], folder, name, size)
        opened.remove_parts()
        return run_sweep(
            make_plan(mine, opened, data_root=data_root, say=say, folder=str(folder)),
            opened,
            chosen,
            study=(study.name, study.hash),
            part=part is not None,
            update=update,
            on_run=on_run,
            say=say,
            max_runs=max_runs,
            checkpoint=checkpoint,
        )


def run_sweep(
    plan: Todo,
    store: Store,
    engine: Engine,
    *,
    study: tuple[str, str] | None = None,
    part: bool = False,
    update: Callable[[Tally], None] = lambda tally: None,
    on_run: OnRun | None = None,
    say: Callable[[str], None] = lambda text: None,
    max_runs: int | None = None,
    checkpoint: float | None = None,
) -> Tally:
    """Do what is missing. A run is stored when it ends; runs under way are given up at a stop.

    ``study`` is a name and hash; see :func:`run_study`.
    """
    waiting = deque(plan.todo)
    tally = Tally(len(plan.specs), before=len(plan.specs) - len(waiting))
    ended = {key: status for key, status in plan.status.items() if status in FINAL}
    submitted: dict[str, Spec] = {}
    tries = Counter[str]()
    data = Counter(DataKey.of(spec.resolved(plan.places)) for spec in waiting)
    if study is not None:
        store.ask((spec.key for spec in plan.specs), study, part=part)

    def end(spec: Spec, outcome: Outcome) -> None:
        status = ended[spec.key] = outcome.status
        key = DataKey.of(spec.resolved(plan.places))
        data[key] -= 1
        if not data[key]:
            engine.forget(key)
        if status == "requeue":
            tally.requeued += 1
            return
        # Weights first: a teacher that is done has its weights.
        if outcome.weights is not None:
            store.save_weights(spec.key, outcome.weights)
        store.put(spec, status, outcome.values | {"commit": commit()}, study=study)
        setattr(tally, status, getattr(tally, status) + 1)

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
                error = f"Its teacher, the run {teacher}, ended as {state}; see tstar runs show."
                status = "requeue" if state == "requeue" else "failed"
                end(spec, Outcome(spec.key, status, {"error": error}))
        update(tally)
        told = []
        for outcome in engine.collect(_POLL) if submitted else []:
            spec = submitted.pop(outcome.key)
            if outcome.status == "requeue":
                say(f"{spec}: {outcome.values['error']}")
                tries[spec.key] += 1
                if tries[spec.key] < ATTEMPTS:
                    tally.retried += 1
                    waiting.appendleft(spec)
                    continue
            else:
                told.append(spec.key)
            end(spec, outcome)
        # After all of them are stored: a callback that raises ends the sweep.
        if on_run is not None:
            name = f"The callback {getattr(on_run, '__qualname__', type(on_run).__name__)}"
            for key in told:
                own.call(name, on_run, opened(store.get(key) or {}))
    update(tally)
    return tally
