"""From a study to what is to be done: checksums, csg, teachers, and what the store has already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from tstar.errors import TstarError
from tstar.sweep.execute import DataKey, build_model, checksum, get_method, load_data
from tstar.sweep.spec import Spec
from tstar.sweep.store import FINAL, Store
from tstar.sweep.study import Study


@dataclass(frozen=True)
class Plan:
    """The runs of a study with everything known that can be known before they start.

    ``specs`` are in the order in which they are tried, teachers first; ``csg`` is by data checksum;
    ``teacher_of`` gives the key of the run that another one depends on.
    """

    specs: tuple[Spec, ...]
    csg: dict[str, float]
    teacher_of: dict[str, str]
    status: dict[str, str]

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
) -> Plan:
    """Read the data once each, check every name, and compare with the store.

    ``csg=False`` leaves out the computation of csg (a dry run needs none).
    """
    specs: dict[str, Spec] = {}
    teacher_of: dict[str, str] = {}
    known: dict[str, float] = {}
    place = {spec.key: index for index, spec in enumerate(study.specs)}
    turn: dict[str, int] = {}
    sources = sorted({DataKey.of(s) for s in study.specs}, key=str)
    needs = {(s.method, s.options): get_method(s).needs for s in study.specs}
    for source in sources:
        mine = [s for s in study.specs if DataKey.of(s) == source]
        data = load_data(source, data_root)
        digest = checksum(data)
        wanted = (study.csg if csg is None else csg) or (
            csg is None and any("csg" in needs[s.method, s.options] for s in mine)
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
            build_model(replace(asked, weights=None, scenario="scratch"), data, data_root)
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
    return Plan(tuple(ordered), known, teacher_of, status)


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
