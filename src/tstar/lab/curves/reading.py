"""Reading runs: from a store or a frame to the rows that are results."""

from __future__ import annotations

import math
import os
from dataclasses import MISSING
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tstar.errors import TstarError, guarded
from tstar.imports import require
from tstar.lab.sweep.spec import FIELDS, FINAL, TABLE, json_object, kind_of

if TYPE_CHECKING:
    import pandas as pd

Metric = Literal["val", "test"]
# A frame with one row per run, or the path of a store.
Runs: TypeAlias = "pd.DataFrame | str | os.PathLike[str]"
# The columns that define a condition: every fact of the training that a store may have.
FACTS = tuple(
    name for name, item in TABLE.items() if item.metadata.get("condition", name in FIELDS)
)
# Facts that follow from the data; a run that diverged early may lack them.
FOLLOW = ("domain", "csg")
# What was done to the model. A curve has one of each.
TREATMENT = ("norm", "method", "options")
_LENGTHS = ("epochs", "steps")
# What runs had in a column that their store did not have yet; true and false are 1 and 0 there.
_DEFAULTS = {
    name: int(default) if isinstance(default, bool) else default
    for name in (*FACTS, *TREATMENT)
    if name not in _LENGTHS and (default := TABLE[name].default) not in (None, MISSING)
}
_OUTCOME = ("temperature", "seed", "status", "spec", "val_accuracy", "test_accuracy")


def read(runs: Any, where: str | None = None, study: str | None = None) -> Any:
    """The runs as a data frame: as given, or from a store (``.db``, ``.parquet``, ``.csv``).

    ``where`` and ``study`` choose among the runs of a store. A list of conditions stays as it is.
    """
    if isinstance(runs, require("pandas", "lab").DataFrame | list | tuple):
        return runs
    if not isinstance(runs, str | os.PathLike):
        raise TstarError(
            f"runs must be a data frame or the path of a store, got {type(runs).__name__}."
        )
    from tstar.lab.sweep.transfer import load_runs

    found = load_runs(Path(runs), where=where, study=study)
    if found.empty and not where is study is None:
        raise TstarError(f"No runs of {str(runs)!r} were chosen; see tstar runs ls {runs}.")
    return found


def results(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that ended, without teachers; what old stores and diverged runs lack, filled in."""
    if "dataset" not in runs.columns:
        raise TstarError(
            f"The runs must have a column 'dataset', got {', '.join(map(str, runs.columns))}."
        )
    kept = runs
    if "status" in runs:
        kept = kept[kept["status"].isin(FINAL)]
    if "role" in runs:
        kept = kept[kept["role"].isna() | (kept["role"] == "run")]
    if kept.empty:
        raise TstarError(f"No finished runs found among {len(runs)}; wait, or run tstar sweep.")
    known = (*FACTS, *FOLLOW, *TREATMENT, *_OUTCOME)
    kept = ordinary(kept[[name for name in known if name in kept.columns]])
    for name in {"temperature", "num_features", "num_classes"} & {*kept.columns}:
        values = kept[name].dropna()
        for wrong in values[~values.between(0, math.inf, inclusive="neither")]:
            raise TstarError(f"{name} must be positive and finite in every run, got {wrong:g}.")
    missing = {n: v for n, v in _DEFAULTS.items() if n in kept.columns and kept[n].isna().any()}
    return _planned_lengths(kept.fillna(missing) if missing else kept)


def ordinary(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with ordinary types: exports bring nullable ones, and SQLite keeps any text."""
    pd = require("pandas", "lab")
    columns = {}
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column.dtype):
            columns[name] = column.astype(float) if column.isna().any() else column.to_numpy()
        elif name in TABLE and kind_of(TABLE[name]) in ("int", "float"):
            with guarded(f"{name} must be a number in every run"):
                columns[name] = pd.to_numeric(column).astype(float)
        else:
            columns[name] = column.astype(object).where(column.notna(), None)
    return pd.DataFrame(columns, index=frame.index)


def _planned_lengths(runs: pd.DataFrame) -> pd.DataFrame:
    """Diverged runs with the epochs and steps of the finished runs beside them.

    A store holds the length that was really trained, and a run that diverged early belongs to the
    condition of those that went the whole way. If there are several lengths, its spec tells.
    """
    lengths = [name for name in _LENGTHS if name in runs.columns]
    if not lengths or "status" not in runs.columns or not (runs["status"] == "diverged").any():
        return runs
    runs = runs.astype(dict.fromkeys(lengths, float))
    others = [name for name in FACTS if name in runs.columns and name not in _LENGTHS]
    for _, group in runs.groupby(others, dropna=False, sort=False):
        diverged = group["status"] == "diverged"
        whole = group.loc[~diverged, lengths].drop_duplicates()
        for index, row in group[diverged].iterrows():
            fits = whole
            if len(whole) > 1:
                spec = json_object(row.get("spec"))
                name = "steps" if spec.get("steps") is not None else "epochs"  # steps override
                fits = whole[whole[name] == spec.get(name)] if name in lengths else whole
            if len(fits) == 1:
                runs.loc[index, lengths] = fits.to_numpy()[0]
            elif whole.empty:
                runs.loc[index, lengths] = float("nan")
    return runs


def plain_value(value: Any) -> Any:
    """A NumPy scalar as Python's, a missing value (``pd.NA`` too) as ``None``."""
    if hasattr(value, "item"):
        value = value.item()
    return None if require("pandas", "lab").isna(value) else value
