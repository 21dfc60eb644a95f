"""From a study to what is to be done: checksums, csg, teachers, and what the store has already."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from tstar import difficulty
from tstar.errors import TstarError, guarded
from tstar.lab.data import DataSet
from tstar.lab.sweep import shared
from tstar.lab.sweep.execute import Job
from tstar.lab.sweep.materials import (
    DataKey,
    build_model,
    get_method,
    inputs_for,
    load_data,
    make_example,
)
from tstar.lab.sweep.spec import FINAL, Places, Spec
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.study import Sources, Study
from tstar.lab.training.parts import make_parts
from tstar.lab.training.running import step_seconds


@dataclass(frozen=True)
class Todo:
    """The runs of a study, teachers first, with what can be known before they start.

    ``csg`` is by data checksum; ``teacher_of`` gives the key of a run's teacher; ``asked`` the
    studies, name → hash, that ask for a run.
    """

    specs: tuple[Spec, ...]
    csg: dict[str, float]
    teacher_of: dict[str, str]
    status: Mapping[str, str]
    places: Places = field(default_factory=dict)
    data_root: str | None = None
    folder: str | None = None
    asked: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def todo(self) -> list[Spec]:
        return [spec for spec in self.specs if self.status.get(spec.key) not in FINAL]

    def job(self, spec: Spec, store: Store, checkpoint: float | None) -> Job:
        """A run with what it needs that is not part of its identity."""
        teacher = self.teacher_of.get(spec.key)
        weights = None if teacher is None else store.weights_path(teacher).read_bytes()
        csg = self.csg.get(spec.data_checksum or "") if spec.csg is None else spec.csg
        file = None if checkpoint is None else (str(store.checkpoint_path(spec.key)), checkpoint)
        where = (self.data_root, csg, weights, "cpu", self.places, self.folder, file, teacher)
        return Job(spec, *where)

    def counts(self) -> dict[str, int]:
        """How many runs are in which state, ``missing`` if the store does not know them."""
        return dict(Counter(self.status.get(spec.key, "missing") for spec in self.specs))


def make_plan(
    study: Study,
    store: Store | None,
    *,
    data_root: str | None = None,
    say: Callable[[str], None] = lambda text: None,
    folder: str | None = None,
    dry: bool = False,
    asked: Mapping[Spec, Mapping[str, str]] | None = None,
) -> Todo:
    """Read the data once each, check every name, and compare with the store.

    Large data sets are written to the ``folder``, from which workers map them. For a ``dry`` run
    no csg is computed, and no weights are looked for. ``asked`` are the studies of each run.
    """
    load_data.cache_clear()  # files and functions may have changed since the last sweep
    places = study.places
    found: dict[str, Spec] = {}
    teacher_of: dict[str, str] = {}
    known: dict[str, float] = {}
    asking = defaultdict[str, dict[str, str]](dict)
    turn = {spec: index for index, spec in enumerate(study.specs)}
    position: dict[str, int] = {}
    methods = {(s.method, s.options): s.resolved(places) for s in study.specs}
    needs = {named: get_method(s).needs for named, s in methods.items()}
    parts, by_data = Sources(Path(), places), defaultdict[DataKey, list[Spec]](list)
    for spec in study.specs:
        by_data[DataKey.of(spec)].append(spec)
    for source, mine in sorted(by_data.items(), key=lambda item: str(item[0])):
        key = DataKey.of(mine[0].resolved(places))
        data = load_data(key, data_root, folder)
        digest = data.checksum()
        if folder is not None:
            _share(key, data_root, folder)
        needed = any("csg" in needs[s.method, s.options] for s in mine if s.csg is None)
        if not dry and (study.csg or needed):
            stored = store.known_csg(digest) if store is not None else None
            if stored is None:
                say(f"csg of {source.dataset} …")
                stored = float(difficulty.csg(data, seed=0))
            known[digest] = stored
        _check_networks(mine, data, data_root, places)
        for spec in mine:
            need, full = needs[spec.method, spec.options], replace(spec, data_checksum=digest)
            if "validation" in need and spec.val_fraction == 0:
                raise TstarError(
                    f"val_fraction > 0 must hold for method {spec.method!r}, which uses "
                    "validation data."
                )
            if "teacher" in need:
                teacher = full.teacher()
                teacher = replace(teacher, source=parts.hash(teacher.to_dict()))
                found.setdefault(teacher.key, teacher)
                teacher_of[full.key] = teacher.key
                asking[teacher.key] |= (asked or {}).get(spec, {})
            else:
                full = replace(full, teacher_features=None)
            found.setdefault(full.key, full)
            position.setdefault(full.key, turn[spec])
            asking[full.key] |= (asked or {}).get(spec, {})
    # Teachers first, then the study's own order.
    ordered = sorted(found.values(), key=lambda spec: position.get(spec.key, -1))
    status = store.status() if store is not None else {}
    for student, teacher_key in teacher_of.items():
        used = status.get(student) not in FINAL and status.get(teacher_key) == "done"
        if used and store and not store.has_weights(teacher_key):
            del status[teacher_key]  # without its weights it is of no use to the student
    plan = Todo(tuple(ordered), known, teacher_of, status, places, data_root, folder, asking)
    # Weights are looked for (and fetched, if the library does so) once, before any worker starts.
    fetched = [s.resolved(places) for s in plan.todo if s.weights is not None and not dry]
    for spec in {(s.model, s.weights): s for s in fetched}.values():
        build_model(spec, load_data(DataKey.of(spec), data_root, folder), data_root)
    return plan


def _share(key: DataKey, root: str | None, folder: str) -> None:
    """Write a whole set once for all workers; the parts drawn from it are drawn by each."""
    place = shared.place(folder, key.dataset, key.size)
    whole = load_data(DataKey(key.dataset, key.size), root, folder)
    if not place.exists() and whole.texts is None:
        shared.save(whole, place)
        load_data.cache_clear()  # from here on this process maps it as well


def _check_networks(specs: list[Spec], data: DataSet, root: str | None, places: Places) -> None:
    """A wrong name, width or shape of the samples is said now, not by every run."""
    for spec in {(s.model, s.num_features, s.trunk_features, s.depth): s for s in specs}.values():
        scratch = replace(spec.resolved(places), weights=None, scenario="scratch")
        model, inputs = build_model(scratch, data, root), inputs_for(scratch, data, root)
        shape = "×".join(map(str, inputs.x_train.shape[1:]))
        takes = f"The network {spec.model!r} must take the samples of {spec.dataset!r}"
        with torch.no_grad(), guarded(f"{takes} ({inputs.domain}, of shape {shape}), but raised"):
            model.eval()(make_example(inputs))


def measure_step(spec: Spec, root: str | None, device: str) -> float:
    """Seconds of a training step of this run, on one thread as a worker has it."""
    data = inputs_for(spec, load_data(DataKey.of(spec), root), root)
    model = build_model(replace(spec, weights=None, scenario="scratch"), data, root)
    config = replace(spec, device=device)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return step_seconds(model, make_parts(data, config, spec.seed), config)
    finally:
        torch.set_num_threads(threads)
