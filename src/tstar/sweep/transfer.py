"""Runs out of a store and into another: export, merge, and loading as a table."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tstar.errors import TstarError, require
from tstar.sweep.columns import COLUMNS, FINAL, MIXED
from tstar.sweep.select import asked_by, last_started, selector, studies_of
from tstar.sweep.store import Store
from tstar.text import DISARMED, disarmed

if TYPE_CHECKING:
    import pandas as pd

_CLAIM = ("claim", "heartbeat", "pid")
EXPORTED = tuple(name for name in COLUMNS if name not in _CLAIM)
_EXPORTS = (".parquet", ".csv")
_KINDS = {"TEXT": "string", "INTEGER": "Int64", "REAL": "float64"}


def load_runs(
    path: str | Path, *, where: str | None = None, study: str | None = None
) -> pd.DataFrame:
    """The runs of a store, or of a Parquet or CSV export, as a pandas table, one row per run.

    Runs that are under way are left out. ``where`` and ``study`` choose (:mod:`tstar.sweep.select`).
    """
    path = Path(path)
    pandas = require("pandas", "sweep")
    meets = selector(where)
    if path.suffix in _EXPORTS:
        table = _read_export(path, pandas)
        if where is None and study is None:
            return table
        rows = _rows(table)
        mine = asked_by(study, _asked(rows))
        kept = pandas.Series([mine(row) and meets(row) for row in rows], table.index, bool)
        return table[kept].reset_index(drop=True)
    with Store(path) as store:
        mine = asked_by(study, store.asked())
        rows = [r for r in store.rows() if r["status"] != "running" and mine(r) and meets(r)]
    return _typed(pandas.DataFrame(rows, columns=list(EXPORTED)))


def _rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as a store has them, ``None`` where a cell is empty."""
    plain = table.astype(object).where(table.notna(), None)
    names = [str(name) for name in plain.columns]
    rows = [dict(zip(names, row, strict=True)) for row in plain.itertuples(index=False, name=None)]
    for row in rows:
        row.update({name: int(row[name]) for name in MIXED if row.get(name) in ("0", "1")})
    return rows


def _asked(rows: Iterable[Mapping[str, Any]]) -> list[tuple[object, object]]:
    """As :meth:`Store.asked`, of rows that were read."""
    return [(row.get("studies"), row.get("started")) for row in rows]


def _read_export(path: Path, pandas: Any) -> pd.DataFrame:
    try:
        if path.suffix == ".parquet":
            return pandas.read_parquet(path)
        kinds = _dtypes()
        # Numbers as text first: pandas before 3 reads them a last bit wrong.
        text = {name: "object" if kind == "float64" else kind for name, kind in kinds.items()}
        table = _typed(pandas.read_csv(path, dtype=text | dict.fromkeys(MIXED, "object")))
    except FileNotFoundError:
        raise TstarError(f"The export {str(path)!r} does not exist.") from None
    except Exception as error:  # a parser of another library: a damaged file may raise anything
        raise TstarError(
            f"{str(path)!r} could not be read as an export of runs: {error}"
        ) from error
    for name in table.columns:
        if name in COLUMNS and table[name].dtype == "string":
            table[name] = table[name].str.replace(DISARMED, "", regex=True)
    return table


def export(
    store: Store, path: str | Path, *, where: str | None = None, study: str | None = None
) -> int:
    """Write every finished run to ``.parquet`` or ``.csv``; the number of rows."""
    path = Path(path)
    if path.suffix not in _EXPORTS:
        raise TstarError(f"An export must end in .parquet or .csv, got {path.name!r}.")
    part = path.with_name(path.name + ".part")
    meets, mine = selector(where), asked_by(study, store.asked())
    try:
        if path.suffix == ".csv":
            count = _write_csv(store, part, lambda row: mine(row) and meets(row))
        else:
            require("pyarrow", "sweep")
            table = load_runs(store.path, where=where, study=study)
            table.to_parquet(part, index=False)
            count = len(table)
        part.replace(path)
    except OSError as error:
        raise TstarError(f"The export {str(path)!r} could not be written: {error}.") from error
    return count


def _write_csv(store: Store, path: Path, chosen: Callable[[Mapping[str, Any]], bool]) -> int:
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(EXPORTED)
        for row in store.rows():
            if row["status"] != "running" and chosen(row):
                writer.writerow([disarmed(row[name]) for name in EXPORTED])
                count += 1
    return count


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a type for each column; of one that may name a part, text where it does."""
    kinds = {name: kind for name, kind in _dtypes().items() if name in table.columns}
    for name in kinds.keys() & set(MIXED):
        if not table[name].dropna().astype(str).isin(("0", "1")).all():
            kinds[name] = "string"
    return table.astype(kinds)


def _dtypes() -> dict[str, str]:
    return {name: _KINDS[COLUMNS[name].partition(" ")[0]] for name in EXPORTED}


@dataclass(frozen=True)
class Merged:
    """What a merge did. ``differing`` are runs with other results in two stores: the first was kept."""

    added: int
    replaced: int
    kept: int
    differing: tuple[str, ...]


def merge(sources: Iterable[str | Path], into: str | Path) -> Merged:
    """Bring the finished and failed runs of several stores into one; what it has and is final stays.

    A source may also be an export (``.parquet``, ``.csv``): a sweep then goes on from it. Exports hold
    no teachers' weights, so teachers are trained again.
    """
    added = replaced = kept = 0
    differing = []
    paths = [Path(source) for source in sources]
    if any(path.resolve() == Path(into).resolve() for path in paths):
        raise TstarError(f"The store {str(into)!r} cannot be merged into itself.")
    # All of them exist and can be read, before anything is written.
    with ExitStack() as stack:
        opened = [
            stack.enter_context(closing(_Export(path) if path.suffix in _EXPORTS else Store(path)))
            for path in paths
        ]
        target = stack.enter_context(Store(into, create=True))
        known = last_started(pair for one in (target, *opened) for pair in one.asked())
        for source in opened:
            for row in source.rows():
                if row["status"] == "running":
                    continue
                have = target.get(row["key"])
                if have is not None:
                    for study in _newer(have, row, known):
                        target.join([row["key"]], study)
                if have is not None and (have["status"] in FINAL or row["status"] not in FINAL):
                    kept += 1
                    if have["status"] in FINAL and row["status"] in FINAL and _differ(have, row):
                        differing.append(row["key"])
                    continue
                weights = source.weights_path(row["key"])
                if weights.exists():
                    goal = target.weights_path(row["key"])
                    goal.parent.mkdir(exist_ok=True)
                    shutil.copyfile(weights, goal)
                studies = (target.get(row["key"]) or row).get("studies")  # of both
                target.insert({**row, "studies": studies})
                added, replaced = added + (have is None), replaced + (have is not None)
    return Merged(added, replaced, kept, tuple(differing))


def _newer(
    have: Mapping[str, Any], row: Mapping[str, Any], known: Mapping[str, Mapping[str, float]]
) -> Iterator[tuple[str, str]]:
    """The studies that ask for a run in another store and not here, or with a newer hash than here."""
    here = studies_of(have["studies"])
    for name, digest in studies_of(row.get("studies")).items():
        times, mine = known.get(name, {}), here.get(name)
        before = -1.0 if mine is None else times.get(mine, -1.0)
        if digest is not None and times.get(digest, 0.0) > before:
            yield name, digest


class _Export:
    """An exported file with what a merge asks of a store."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise TstarError(f"The export {str(path)!r} does not exist.")
        table = load_runs(path)
        if "key" not in table.columns or "spec" not in table.columns:
            raise TstarError(
                f"{str(path)!r} must be an export of tstar runs export, but it has no column key or spec."
            )
        self._path = path
        self._rows = _rows(table)

    def rows(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def asked(self) -> list[tuple[object, object]]:
        return _asked(self._rows)

    def weights_path(self, key: str) -> Path:
        return self._path.with_name(self._path.name + ".weights") / f"{key}.pt"

    def close(self) -> None:
        """Nothing is open."""


def _differ(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return any(a[name] != b[name] for name in ("status", "val_accuracy", "test_accuracy"))
