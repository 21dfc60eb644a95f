"""Runs whose list grows with the results: how the studies of this folder use a store.

A run is known by its description without the data's checksum, which is only known once the data are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from tstar.lab.sweep.columns import FINAL
from tstar.lab.sweep.execute import Job, Outcome, checksum, execute
from tstar.lab.sweep.materials import DataKey, load_data
from tstar.lab.sweep.provenance import commit
from tstar.lab.sweep.spec import Spec
from tstar.lab.sweep.store import Store

Results = dict[str, dict[str, Any]]


def identity(spec: Spec) -> str:
    return replace(spec, data_checksum=None).key


def by_identity(rows: Iterable[Mapping[str, Any]]) -> Results:
    """Every finished run by its identity."""
    finished = (row for row in rows if row["status"] in FINAL)
    return {identity(Spec(**json.loads(row["spec"]))): dict(row) for row in finished}


def exported(path: Path) -> Results:
    """The finished runs of an export."""
    rows = pd.read_parquet(path).astype(object)
    return by_identity(rows.where(rows.notna(), None).to_dict("records"))


def run_all(
    store: Store, specs: Iterable[Spec], data_root: str | None, study: str, *, resume: bool = False
) -> Iterator[Outcome]:
    """Run these in this process; several processes may do so on one store, each with a part of the work.

    With ``resume`` a run writes a checkpoint every three minutes and goes on from it.
    """
    for spec in specs:
        data = load_data(DataKey.of(spec), data_root)
        spec = replace(spec, data_checksum=checksum(data))
        row = store.get(spec.key)
        if row is not None and row["status"] in FINAL:
            continue
        place = (str(store.checkpoint_path(spec.key)), 3.0) if resume else None
        outcome = execute(Job(spec, data_root, checkpoint=place), data)
        if outcome.status != "requeue":
            values = outcome.values | {"commit": commit()}
            store.put(spec, outcome.status, values, studies={study: ""})
        yield outcome


def complete(
    store: Store,
    runs_of: Callable[[Results], Mapping[str, Spec]],
    data_root: str,
    study: str,
    *,
    known: Results | None = None,
    resume: bool = False,
) -> Iterator[str]:
    """Run what is missing of a list that grows with the results; a run that fails is tried once. A line for each."""
    found, tried = (known or {}) | by_identity(store.rows()), set[str]()
    while True:
        done = found.keys() | tried
        left = [(n, s) for n, s in runs_of(found).items() if identity(s) not in done]
        if not left:
            return
        name, spec = left[0]
        tried.add(identity(spec))
        for outcome in run_all(store, [spec], data_root, study, resume=resume):
            row = store.get(outcome.key)
            if row is not None and row["status"] in FINAL:
                found[identity(spec)] = row
            score = 100 * (outcome.values.get("test_accuracy") or float("nan"))
            seconds = outcome.values.get("seconds") or float("nan")
            error = (outcome.values.get("error") or "").strip().rpartition("\n")[2]
            yield f"{name}: {outcome.status} {score:.1f} {seconds:.0f} s {error}".rstrip()
