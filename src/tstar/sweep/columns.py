"""The columns of a store: what is known of each run, and of which kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tstar.formula.training import SCENARIOS
from tstar.sweep.spec import KINDS, LATER

FINAL = ("done", "diverged")
STATUSES = ("running", *FINAL, "failed")

SCORES = ("val_accuracy", "test_accuracy", "train_accuracy", "train_loss", "val_loss", "nll", "ece")
# The values of a metric of your own, with their names in `extra`.
METRICS = {"val_metric": "val_metric", "test_metric": "metric"}
_SQL = {"str": "TEXT", "int": "INTEGER", "bool": "INTEGER", "float": "REAL"}
COLUMNS: dict[str, str] = {
    "key": "TEXT PRIMARY KEY",
    "status": "TEXT NOT NULL CHECK (status IN ('running', 'done', 'diverged', 'failed'))",
    "attempts": "INTEGER NOT NULL",
    # What was run: a column for each field of a run. num_features, norm, temperature, epochs and steps are those of the model as it
    # was really trained; what the study asked for is in `spec`.
    **{name: _SQL[kind] for name, kind in KINDS.items()},
    **dict.fromkeys(("domain", "teacher", "spec"), "TEXT"),
    **dict.fromkeys(("num_train", "num_classes"), "INTEGER"),
    "studies": "TEXT",  # that ask for it: JSON, name → hash, null where it asks no longer
    # What came out.
    **dict.fromkeys((*SCORES, *METRICS, "seconds", "images_per_second"), "REAL"),
    "trainings": "INTEGER",
    **dict.fromkeys(("curves", "extra", "versions", "commit", "error"), "TEXT"),
    # Who works, or worked, on it; times in seconds since 1970.
    **dict.fromkeys(("host", "claim"), "TEXT"),
    "pid": "INTEGER",
    **dict.fromkeys(("started", "heartbeat", "finished"), "REAL"),
}
# Columns of later schemas, with what older runs had there. csg is a column of the first.
ADDED: dict[str, object] = {
    **{name: value for name, value in LATER.items() if name != "csg"},
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
    """Whether a cell is what its column may hold; an unknown column may hold anything."""
    if value is None or name not in COLUMNS:
        return True
    if name in OPENED and isinstance(value, str):
        try:
            json.loads(value)
        except (ValueError, RecursionError):
            return False
    if name == "scenario" and value not in SCENARIOS:
        return False
    if name in MIXED and isinstance(value, str):
        return True
    return isinstance(value, _TYPES[COLUMNS[name].partition(" ")[0]])


def own_scores(extra: Mapping[str, Any]) -> dict[str, float]:
    """The values of a metric of your own, among what a run recorded."""
    found = {name: extra.get(recorded) for name, recorded in METRICS.items()}
    return {name: value for name, value in found.items() if isinstance(value, int | float)}


def recovered(row: Mapping[str, Any]) -> dict[str, Any]:
    """What older stores kept elsewhere: a metric's values in `extra` alone, an augmentation's name in `spec`."""
    found: dict[str, Any] = {}
    if row["metric"] is not None and all(row[name] is None for name in METRICS):
        found |= own_scores(json_object(row["extra"]))
    if row["source"] is not None:
        asked = json_object(row["spec"])
        found |= {name: asked[name] for name in MIXED if isinstance(asked.get(name), str)}
    return found


def json_object(text: object) -> dict[str, Any]:
    """What a cell of JSON describes; empty where it describes no object."""
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
