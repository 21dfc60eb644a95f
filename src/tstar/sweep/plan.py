"""From a study to what is to be done: checksums, csg, teachers, and what the store has already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tstar.errors import TstarError
from tstar.sweep import shared
from tstar.sweep.columns import FINAL
from tstar.sweep.execute import (
    DataKey,
    Job,
    build_model,
    execute,
    get_method,
    inputs_for,
    load_data,
    make_example,
)
from tstar.sweep.spec import OWN, Places, Spec
from tstar.sweep.store import Store
from tstar.sweep.study import Study

if TYPE_CHECKING:
    from torch import nn

    from tstar.data import DataSet


@dataclass(frozen=True)
class Todo:
    """The runs of a study with everything known that can be known before they start.

    ``specs`` are in the order in which they are tried, teachers first; ``csg`` is by data checksum;
    ``teacher_of`` gives the key of the run that another one depends on.
    """

    specs: tuple[Spec, ...]
    csg: dict[str, float]
    teacher_of: dict[str, str]
    status: dict[str, str]
    places: Places = field(default_factory=dict)

    @property
    def todo(self) -> list[Spec]:
        return [spec for spec in self.specs if self.status.get(spec.key) not in FINAL]

    def counts(self) -> dict[str, int]:
        """How many runs are in which state; ``missing`` are those that the store does not know."""
        return dict(Counter(self.status.get(spec.key, "missing") for spec in self.specs))


def make_plan(
    study: Study,
    store: Store | None,
    *,
    data_root: str | None = None,
    say: Callable[[str], None] = lambda text: None,
    csg: bool | None = None,
    folder: str | None = None,
) -> Todo:
    """Read the data once each, check every name, and compare with the store.

    ``csg=False`` leaves out the computation of csg (a dry run needs none). Large data sets are written to the
    ``folder``, from which the workers map them.
    """
    load_data.cache_clear()  # files and functions may have changed since the last sweep of this process
    specs: dict[str, Spec] = {}
    teacher_of: dict[str, str] = {}
    known: dict[str, float] = {}
    place = {spec.key: index for index, spec in enumerate(study.specs)}
    turn: dict[str, int] = {}
    sources = sorted({DataKey.of(s) for s in study.specs}, key=str)
    known_methods = {(s.method, s.options): s.resolved(study.places) for s in study.specs}
    needs = {named: get_method(s).needs for named, s in known_methods.items()}
    for source in sources:
        mine = [s for s in study.specs if DataKey.of(s) == source]
        found = DataKey.of(mine[0].resolved(study.places))
        data = _read(found, study, data_root, folder)
        digest = shared.checksum(data)
        if folder is not None:
            _share(found, data_root, folder)
        unknown = [s for s in mine if s.csg is None]
        wanted = (study.csg if csg is None else csg) or (
            csg is None and any("csg" in needs[s.method, s.options] for s in unknown)
        )
        if wanted:
            stored = store.known_csg(digest) if store is not None else None
            if stored is None:
                say(f"csg of {source.dataset} …")
                from tstar.difficulty import csg as compute_csg

                stored = float(compute_csg(data, seed=0))
            known[digest] = stored
        # A wrong name or width is said now, not by every run.
        networks = {(s.model, s.num_features, s.trunk_features, s.depth): s for s in mine}
        for asked in networks.values():
            scratch = replace(asked.resolved(study.places), weights=None, scenario="scratch")
            _check_inputs(
                build_model(scratch, data, data_root), inputs_for(scratch, data, data_root), asked
            )
        _rehearse([s for s in mine if s.source is not None], data, data_root, study.places)
        for spec in mine:
            need = needs[spec.method, spec.options]
            position = place[spec.key]
            spec = replace(spec, data_checksum=digest)
            _check(spec, need)
            if "teacher" not in need:
                spec = replace(spec, teacher_features=None)
            else:
                teacher = spec.teacher()
                specs.setdefault(teacher.key, teacher)
                teacher_of[spec.key] = teacher.key
            specs.setdefault(spec.key, spec)
            turn.setdefault(spec.key, position)
    # Teachers first, then the study's own order: a long sweep begins with what its author put first.
    ordered = sorted(specs.values(), key=lambda spec: turn.get(spec.key, -1))
    status = store.status(specs) if store is not None else {}
    if store is not None:
        for spec in ordered:
            # A teacher without its weights is of no use to its students.
            lost = spec.role == "teacher" and not store.weights_path(spec.key).exists()
            if lost and status.get(spec.key) == "done":
                status[spec.key] = "missing"
    plan = Todo(tuple(ordered), known, teacher_of, status, study.places)
    # Weights are looked for (and fetched, where the library does so) once, before any worker starts.
    for spec in {(s.model, s.weights): s for s in plan.todo if s.weights is not None}.values():
        spec = spec.resolved(study.places)
        build_model(spec, load_data(DataKey.of(spec), data_root, folder), data_root)
    return plan


def _read(key: DataKey, study: Study, root: str | None, folder: str | None) -> DataSet:
    """The data; where there are none, the study's own words are the place to look."""
    from tstar.data.loading import NotFoundError

    try:
        return load_data(key, root, folder)
    except NotFoundError as error:
        if not study.about.strip():
            raise
        said = f"{error} The study's about text may say where its data come from."
        raise NotFoundError(said) from error


def _share(key: DataKey, root: str | None, folder: str) -> None:
    """Write a whole set once for all workers; the parts drawn from it are drawn by each."""
    place = shared.place(folder, key.dataset, key.size)
    if shared.is_shared(place) or shared.is_shared(key.dataset):
        return
    whole = load_data(DataKey(key.dataset, key.size), root, folder)
    if shared.worthwhile(whole):
        shared.save(whole, place)
        load_data.cache_clear()  # from here on this process maps it as well


def _check_inputs(model: nn.Module, data: DataSet, spec: Spec) -> None:
    """Raise if the network does not take samples of this shape."""
    import torch

    try:
        with torch.no_grad():
            model.eval()(make_example(data))
    except TstarError:
        raise
    except Exception as error:
        shape = "×".join(map(str, data.x_train.shape[1:]))
        raise TstarError(
            f"The network {spec.model!r} must take the samples of {spec.dataset!r} ({data.domain}, of shape "
            f"{shape}), but raised {type(error).__name__}: {error}; choose a network for such data."
        ) from error


def _rehearse(specs: list[Spec], data: DataSet, root: str | None, places: Places) -> None:
    """One step with each combination of parts of your own, so that a broken one is told before any run."""
    kinds = {tuple(_part(spec, name) for name in OWN): spec for spec in reversed(specs)}
    for spec in kinds.values():
        if "teacher" in get_method(spec.resolved(places)).needs:
            continue  # its teacher is not trained yet
        config = replace(
            spec.config, steps=1, batch_size=min(32, spec.config.batch_size), compile=False
        )
        fewest = max(data.num_classes, min(4 * config.batch_size, len(data.y_train)))
        small = data.subset(
            train=min(2 * fewest, len(data.y_train)), test=min(64, len(data.y_test))
        )
        trial = replace(spec, config=config, data_checksum=None)
        outcome = execute(Job(trial, root, spec.csg or 1.0, places=places), small)
        if outcome.status == "failed":
            why = outcome.values["error"].strip()
            if why.startswith("Traceback"):
                why = why.splitlines()[-1]
            raise TstarError(f"A trial step of the run {spec} failed: {why}")


def _part(spec: Spec, name: str) -> object:
    return getattr(spec, name) if hasattr(spec, name) else getattr(spec.config, name)


def _check(spec: Spec, needs: frozenset[str]) -> None:
    """What only shows when the method is known, said before the first run starts."""
    if "teacher" in needs and spec.teacher_features is None:
        raise TstarError(
            f"teacher_features must be given for method {spec.method!r}: the M of the teacher, which is "
            "trained first; add it to [training] or to the [[grid]]."
        )
    if "validation" in needs and spec.config.val_fraction == 0:
        raise TstarError(
            f"val_fraction > 0 must hold for method {spec.method!r}, which uses validation data, but "
            "got val_fraction=0."
        )
