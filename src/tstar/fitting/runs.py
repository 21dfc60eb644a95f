"""Reading runs, and grouping them into conditions. A condition is everything but T and the seed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError, require, unknown

if TYPE_CHECKING:
    import pandas as pd

Metric = Literal["val", "test"]
# What defines a condition, of the columns that a store may have.
CONDITION = (
    *("dataset", "domain", "size", "num_train", "num_classes", "csg", "model", "num_features"),
    *("norm", "method", "options", "scenario", "weights", "optimizer", "lr", "momentum"),
    *("weight_decay", "schedule", "warmup", "epochs", "steps", "batch_size", "label_smoothing"),
    *("val_fraction", "augment", "padding", "flip", "rotation", "amp"),
)
_NAMED = ("dataset", "model", "num_features", "num_classes", "csg", "norm", "scenario", "lr")
_LENGTHS = ("epochs", "steps")
_ENDED = ("done", "diverged")


@dataclass(frozen=True)
class Condition:
    """One condition: what defines it, and the accuracies seen at each temperature.

    ``temperatures`` ascend; ``accuracies[i]`` holds one number a seed, in ascending order, so that
    the order of runs leaves no trace.
    """

    facts: dict[str, Any]
    temperatures: tuple[float, ...]
    accuracies: tuple[tuple[float, ...], ...]
    diverged: int

    @property
    def runs(self) -> int:
        return sum(map(len, self.accuracies))

    def __str__(self) -> str:
        return ", ".join(
            f"{name}={_show(self.facts[name])}"
            for name in _NAMED
            if self.facts.get(name) is not None
        )

    @property
    def order(self) -> tuple[tuple[int, float, str], ...]:
        """A sort key over all facts: numbers by size, then texts, then what is missing."""
        return tuple(_rank(self.facts.get(name)) for name in CONDITION)


def read(runs: pd.DataFrame | str | os.PathLike[str]) -> pd.DataFrame:
    """The runs as a data frame: one as given, or from ``.db`` (table ``runs``), ``.parquet`` or ``.csv``."""
    pd = require("pandas", "fit")
    if isinstance(runs, pd.DataFrame):
        return runs
    if not isinstance(runs, str | os.PathLike):
        raise TstarError(
            f"runs must be a data frame or the path of a store, got {type(runs).__name__}."
        )
    path = Path(runs)
    if not path.is_file():
        raise TstarError(f"The store of runs must exist, got {os.fspath(runs)!r}.")
    if path.suffix == ".parquet":
        require("pyarrow", "sweep")
        return pd.read_parquet(path)
    if path.suffix == ".csv":
        return pd.read_csv(path)
    if path.suffix not in (".db", ".sqlite", ".sqlite3"):
        raise TstarError(
            f"A store of runs must be .db (SQLite), .parquet or .csv, got {path.suffix!r}."
        )
    try:
        # Read-only: a sweep may be writing to the same store.
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            return pd.read_sql_query("SELECT * FROM runs", connection)
    except (sqlite3.Error, pd.errors.DatabaseError) as error:
        raise TstarError(
            f"{os.fspath(runs)!r} must be a SQLite store with a table 'runs': {error}."
        ) from error


def conditions(
    runs: pd.DataFrame,
    *,
    metric: Metric,
    norm: str | None,
    method: str | None,
) -> tuple[Condition, ...]:
    """The conditions of the runs that ended, in a fixed order.

    A diverged run is a result: it counts with the accuracy of chance, 1/K, whatever was recorded.
    Failed and unfinished runs are no results and are left out, and so are teachers. ``norm`` keeps the runs with that
    norm before the output layer (``None``: all); ``method`` keeps one method's.
    """
    column = _metric_column(runs, metric)
    kept = planned_lengths(select(runs, norm=norm, method=method))
    if kept.empty:
        raise TstarError(
            f"At least one finished run must be there, got none of {len(runs)} with status in "
            f"{_ENDED}{'' if norm is None else f' and norm={norm!r}'}"
            f"{'' if method is None else f' and method={method!r}'}; "
            f"{_what_is_there(runs)}"
        )
    names = [name for name in CONDITION if name in kept.columns]
    groups = [
        _condition(dict(zip(names, key, strict=True)), group, column)
        for key, group in kept.groupby(names, dropna=False, sort=False)
    ]
    return tuple(sorted(groups, key=lambda condition: condition.order))


def listed(found: Sequence[Condition], limit: int = 8) -> str:
    """The conditions for a message, one a line."""
    more = [f"  … and {len(found) - limit} more"] if len(found) > limit else []
    return "\n".join([f"  {condition}" for condition in found[:limit]] + more)


def _condition(facts: dict[str, Any], group: pd.DataFrame, column: str) -> Condition:
    facts = {name: plain_value(value) for name, value in facts.items()}
    accuracy = accuracies(facts, group, column)
    temperature = group["temperature"].to_numpy(dtype=float)
    levels = np.unique(temperature)
    return Condition(
        facts=facts,
        temperatures=tuple(float(level) for level in levels),
        accuracies=tuple(
            tuple(float(value) for value in np.sort(accuracy[temperature == level]))
            for level in levels
        ),
        diverged=int((group["status"] == "diverged").sum()) if "status" in group else 0,
    )


def accuracies(facts: dict[str, Any], group: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """Accuracy of each run as a fraction, diverged runs at chance."""
    values: NDArray[np.float64] = group[column].to_numpy(dtype=float).copy()
    if "status" in group:
        diverged = (group["status"] == "diverged").to_numpy()
        if diverged.any():
            classes = facts.get("num_classes")
            if classes is None:
                raise TstarError(
                    "num_classes must be known where a run diverged (it counts as chance, 1/K); missing in\n  "
                    + ", ".join(f"{name}={_show(value)}" for name, value in facts.items())
                )
            values[diverged] = 1 / float(classes)
    where = ", ".join(f"{name}={_show(value)}" for name, value in facts.items())
    if not np.isfinite(values).all():
        raise TstarError(
            f"{column} must be a number in every finished run, got none in a run of\n  {where}"
        )
    outside = values[(values < 0) | (values > 1)]
    if outside.size:
        raise TstarError(
            f"{column} must be a fraction from 0 to 1, got {outside[0]:g}; divide percentages by 100. In\n  {where}"
        )
    return values


def select(runs: pd.DataFrame, *, norm: str | None, method: str | None) -> pd.DataFrame:
    for name in ("dataset", "temperature"):
        if name not in runs.columns:
            raise TstarError(
                f"The runs must have a column {name!r}, got {', '.join(map(str, runs.columns))}."
            )
    kept = runs
    if "status" in kept.columns:
        kept = kept[kept["status"].isin(_ENDED)]
    if norm is not None and "norm" in kept.columns:
        kept = kept[kept["norm"] == norm]
    if method is not None and "method" in kept.columns:
        kept = kept[kept["method"] == method]
    if "role" in kept.columns:
        kept = kept[kept["role"].isna() | (kept["role"] == "run")]
    kept = kept[kept["temperature"].notna()]
    if not kept.empty and not (kept["temperature"].astype(float) > 0).all():
        raise TstarError(
            f"temperature > 0 must hold in every run, got {kept['temperature'].astype(float).min():g}."
        )
    return kept


def planned_lengths(runs: pd.DataFrame) -> pd.DataFrame:
    """Diverged runs with the epochs and steps of the finished runs beside them.

    A store holds the length that was really trained; a run that diverged early belongs to the
    condition of those that went the whole way.
    """
    lengths = [name for name in _LENGTHS if name in runs.columns]
    if not lengths or "status" not in runs.columns or not (runs["status"] == "diverged").any():
        return runs
    runs = runs.astype(dict.fromkeys(lengths, float))
    others = [name for name in CONDITION if name in runs.columns and name not in _LENGTHS]
    for _, group in runs.groupby(others, dropna=False, sort=False):
        diverged = group.index[group["status"] == "diverged"]
        whole = group.loc[group["status"] != "diverged", lengths].drop_duplicates()
        if len(whole) == 1:
            runs.loc[diverged, lengths] = whole.to_numpy()
        elif len(whole) == 0:
            runs.loc[diverged, lengths] = float("nan")
    return runs


def _metric_column(runs: pd.DataFrame, metric: str) -> str:
    if metric not in ("val", "test"):
        raise unknown("metric", metric, ("val", "test"))
    column = f"{metric}_accuracy"
    if column not in runs.columns:
        raise TstarError(
            f"The runs must have a column {column!r} for metric={metric!r}, got "
            f"{', '.join(map(str, runs.columns))}."
        )
    return column


def _what_is_there(runs: pd.DataFrame) -> str:
    seen = [
        f"{name}: {', '.join(f'{value} ({n})' for value, n in runs[name].value_counts().items())}"
        for name in ("status", "norm", "method")
        if name in runs.columns
    ]
    return ("the runs have " + "; ".join(seen) + ".") if seen else "there are no runs."


def plain_value(value: Any) -> Any:
    """A NumPy scalar as Python's, a missing value as ``None``."""
    if hasattr(value, "item"):
        value = value.item()
    # isna() also knows pd.NA, which Parquet files bring and which has no truth value.
    return None if require("pandas", "fit").isna(value) else value


def _rank(value: Any) -> tuple[int, float, str]:
    if value is None:
        return (2, 0.0, "")
    return (1, 0.0, value) if isinstance(value, str) else (0, float(value), "")


def _show(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
