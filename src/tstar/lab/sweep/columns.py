"""The columns of a store: what is known of each run, and of which kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tstar.lab.sweep.spec import GONE, KINDS, LATER

FINAL = ("done", "diverged")
STATUSES = (*FINAL, "failed")  # "running" too in stores of earlier versions: such a run is missing

SCORES = ("val_accuracy", "test_accuracy", "train_accuracy", "train_loss", "val_loss", "nll", "ece")
# A metric of your own: column → its name in `extra`.
METRICS = {"val_metric": "val_metric", "test_metric": "metric"}
_SQL = {"str": "TEXT", "int": "INTEGER", "bool": "INTEGER", "float": "REAL"}
COLUMNS: dict[str, str] = {
    "key": "TEXT PRIMARY KEY",
    "status": "TEXT NOT NULL CHECK (status IN ('running', 'done', 'diverged', 'failed'))",
    "attempts": "INTEGER NOT NULL",
    # What was run; M, norm, T, epochs and steps as trained. `spec` has what was asked.
    **{name: _SQL[kind] for name, kind in KINDS.items()},
    **dict.fromkeys(GONE, "REAL"),
    **dict.fromkeys(("domain", "teacher", "spec"), "TEXT"),
    **dict.fromkeys(("num_train", "num_classes"), "INTEGER"),
    "studies": "TEXT",  # that ask for it: JSON, name → hash, null if it asks no longer
    # What came out.
    **dict.fromkeys((*SCORES, *METRICS, "seconds", "images_per_second"), "REAL"),
    "trainings": "INTEGER",
    **dict.fromkeys(("curves", "extra", "versions", "commit", "error"), "TEXT"),
    # Where it was trained, and when, in seconds since 1970.
    "host": "TEXT",
    **dict.fromkeys(("started", "finished"), "REAL"),
}
# Columns of later schemas, with what older runs had there. csg is a column of the first.
ADDED: dict[str, object] = {
    **{name: value for name, value in LATER.items() if name != "csg"},
    **GONE,
    "nesterov": 0,
    "studies": None,
    **dict.fromkeys(METRICS),
}
WRITTEN = ("curves", "extra", "versions")  # JSON that the store itself writes
OPENED = (*WRITTEN, "options", "spec", "studies")  # every column that holds JSON
# 0, 1, or the name of a part of your own: SQLite keeps text in a column of numbers as text.
MIXED = ("augment",)
_TYPES: dict[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "REAL": (int, float)}


def fits(name: str, value: object) -> bool:
    """Whether a cell is what its column may hold."""
    if value is None or (name in MIXED and isinstance(value, str)):
        return True
    try:
        opened({name: value})
    except (TypeError, ValueError, RecursionError):
        return False
    if isinstance(value, int | float) and name in ("started", "finished") and abs(value) > 5e10:
        return False  # no day of the calendar
    return isinstance(value, _TYPES[COLUMNS[name].partition(" ")[0]])


def own_scores(extra: Mapping[str, Any]) -> dict[str, float]:
    """The values of a metric of your own, among what a run recorded."""
    found = {name: extra.get(recorded) for name, recorded in METRICS.items()}
    return {name: value for name, value in found.items() if isinstance(value, int | float)}


def recovered(row: Mapping[str, Any]) -> dict[str, Any]:
    """What older stores kept in `extra` (a metric) and in `spec` (an augmentation's name)."""
    found: dict[str, Any] = {}
    if row["metric"] is not None and all(row[name] is None for name in METRICS):
        found |= own_scores(json_object(row["extra"]))
    if row["source"] is not None:
        asked = json_object(row["spec"])
        found |= {name: asked[name] for name in MIXED if isinstance(asked.get(name), str)}
    return found


def json_object(text: object) -> dict[str, Any]:
    """What a cell of JSON describes; empty if it describes no object."""
    try:
        content = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def opened(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its JSON columns as what they describe."""
    return {
        name: json.loads(value) if name in OPENED and value is not None else value
        for name, value in row.items()
    }
