"""Runs as a table, chosen by an expression or a study; out of a store, and into another."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tstar.errors import TstarError, guarded, shown, unknown
from tstar.imports import require
from tstar.lab.cells import DISARMED, disarmed
from tstar.lab.files import written
from tstar.lab.sweep.spec import COLUMNS, FINAL, MIXED, STATUSES, json_object
from tstar.lab.sweep.store import Store, real_path

if TYPE_CHECKING:
    import pandas as pd

_EXPORTS = (".parquet", ".csv")
_COMPARED = ("status", "val_accuracy", "test_accuracy")
_KINDS = {"TEXT": "string", "INTEGER": "Int64", "REAL": "float64"}
_DTYPES = {name: _KINDS[kind.partition(" ")[0]] for name, kind in COLUMNS.items()}


@guarded("load_runs() failed")
def load_runs(
    path: str | Path, *, where: str | None = None, study: str | None = None
) -> pd.DataFrame:
    """The runs of a store, or of a Parquet or CSV export, as a pandas table, one row per run.

    Args:
        path: the store, or the export of one.
        where: only runs for which this holds, such as ``'model == "vgg9" and lr < 0.1'``
            (pandas' ``DataFrame.query``).
        study: only runs that this study asks for.
    """
    path = Path(path)
    pandas = require("pandas", "lab")
    if path.suffix in _EXPORTS:
        table = _read_export(path, pandas)
    else:
        with Store(path) as store:
            table = _typed(pandas.DataFrame(store.rows(), columns=list(COLUMNS)))
    if "status" in table:
        table = table[table["status"].isin(STATUSES)]
    return choose(table, where, study)


def choose(runs: pd.DataFrame, where: str | None, study: str | None) -> pd.DataFrame:
    """The runs for which ``where`` holds and that ``study`` asks for; ``None`` takes all."""
    if study is not None:
        names = [json_object(text) for text in runs.get("studies", [])]
        known = {name for each in names for name in each}
        if study not in known:
            raise unknown("study", study, known)
        runs = runs[[each.get(study) is not None for each in names]]
    if where is not None:
        with guarded(
            '--where must compare columns with values, such as \'model == "vgg9" and '
            f"lr < 0.1', got {shown(where)}"
        ):
            runs = runs[runs.eval(where.strip(), engine="python")]
    return runs.reset_index(drop=True)


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as a store has them, ``None`` for an empty cell."""
    plain = table.astype(object).where(table.notna(), None)
    rows: list[dict[str, Any]] = plain.to_dict("records")
    for row in rows:
        row.update({name: int(row[name]) for name in MIXED if row.get(name) in ("0", "1")})
    return rows


def _read_export(path: Path, pandas: Any) -> pd.DataFrame:
    with guarded(f"{str(path)!r} is no export of runs that can be read"):
        if path.exists() and not path.is_file():  # a pipe blocks, a device never ends
            raise TstarError(f"The export {str(path)!r} must be a regular file.")
        if path.suffix == ".parquet":
            return _typed(pandas.read_parquet(path))
        # Numbers as text first: pandas before 3 reads them a last bit wrong.
        text = {name: "object" if kind == "float64" else kind for name, kind in _DTYPES.items()}
        table = _typed(pandas.read_csv(path, dtype=text | dict.fromkeys(MIXED, "object")))
    for name in table.columns:
        if name in COLUMNS and table[name].dtype == "string":
            table[name] = table[name].str.replace(DISARMED, "", regex=True)
    return table


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a type for each column; text if a column names a part."""
    kinds = {name: kind for name, kind in _DTYPES.items() if name in table.columns}
    for name in kinds.keys() & set(MIXED):
        if not table[name].dropna().astype(str).isin(("0", "1")).all():
            kinds[name] = "string"
    return table.astype(kinds)


@guarded("export() failed")
def export(
    store: str | Path, path: str | Path, *, where: str | None = None, study: str | None = None
) -> int:
    """Write every finished run to ``.parquet`` or ``.csv``; returns their number."""
    path = Path(path)
    if path.suffix not in _EXPORTS:
        raise TstarError(f"An export must end in .parquet or .csv, got {path.name!r}.")
    table = load_runs(store, where=where, study=study)
    with written(path) as part:
        if path.suffix == ".csv":
            text = [name for name, kind in _DTYPES.items() if kind == "string" or name in MIXED]
            cells = {name: table[name].map(disarmed, na_action="ignore") for name in text}
            table.assign(**cells).to_csv(part, index=False, lineterminator="\r\n")
        else:
            require("pyarrow", "lab")
            table.to_parquet(part, index=False)
    return len(table)


@dataclass(frozen=True)
class Merged:
    """What a merge did. ``differing`` runs have other results in two stores: the first was kept."""

    added: int
    replaced: int
    kept: int
    differing: tuple[str, ...]


@guarded("merge() failed")
def merge(sources: Iterable[str | Path], into: str | Path) -> Merged:
    """Bring the finished and failed runs of several stores or exports into one.

    What it has and is final stays. Exports hold no teachers' weights: teachers are trained again.
    """
    counts, differing = Counter[str](), list[str]()
    paths = [Path(source) for source in sources]
    if any(path.resolve() == Path(into).resolve() for path in paths):
        raise TstarError(f"The store {str(into)!r} cannot be merged into itself.")
    # All of them exist and can be read, before anything is written.
    tables = [load_runs(path) for path in paths]
    for path, table in zip(paths, tables, strict=True):
        if not {"key", "spec"} <= {*table.columns}:
            raise TstarError(
                f"{str(path)!r} must be an export of runs, but it has no column key or spec."
            )
    with Store(into, create=True) as target, target.together():
        for path, table in zip(paths, tables, strict=True):
            for row in rows_of(table):
                have, chosen = target.get(row["key"]), row
                asked = json_object((have or {}).get("studies"))
                asked |= {n: h for n, h in json_object(row.get("studies")).items() if h is not None}
                if have and (have["status"] in FINAL or row["status"] not in FINAL):
                    counts["kept"] += 1
                    chosen = have
                    final = {have["status"], row["status"]} <= {*FINAL}
                    if final and any(have[name] != row[name] for name in _COMPARED):
                        differing.append(row["key"])
                else:
                    counts["replaced" if have else "added"] += 1
                weights = Path(f"{real_path(path)}.weights", f"{row['key']}.pt")
                if weights.exists() and not target.has_weights(row["key"]):
                    target.save_weights(row["key"], weights.read_bytes())
                merged = chosen | {"studies": json.dumps(asked) if asked else None}
                if merged != have:
                    target.insert(merged)
    return Merged(counts["added"], counts["replaced"], counts["kept"], tuple(differing))
