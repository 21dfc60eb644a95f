"""The columns of a store: a run as it was asked for and trained, and what came out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any

from tstar.lab.sweep.spec import FIELDS, kind_of
from tstar.training import described

FINAL = ("done", "diverged")
STATUSES = (*FINAL, "failed")


@dataclass(frozen=True)
class StoredRun:
    """What a row of a store has besides the fields of its spec.

    In a row M, T, norm, samples, epochs and steps are as trained; ``spec`` has what was asked.
    Accuracies are shares after the last epoch.
    """

    key: str = described("the name of the run: a hash of its spec", "", label="key", listed=True)
    status: str = described("done, diverged or failed", "", label="status", listed=True)
    attempts: int = described("how often it was tried", 1)
    num_classes: int | None = described("K, the number of classes", label="K", condition=True)
    domain: str | None = described("image, signal, vector or text", label="domain")
    teacher: str | None = described("the key of its teacher")
    spec: str | None = described("what was asked, as JSON", json=True)
    studies: str | None = described(
        "that ask for it, as JSON: name → hash, null if it asks no longer", json=True
    )
    val_accuracy: float | None = described("on the part held out", label="val %", listed=True)
    test_accuracy: float | None = described("on the test part", label="test %", listed=True)
    train_accuracy: float | None = described("on the last epoch's batches", label="train %")
    train_loss: float | None = described("on the last epoch's batches", label="train loss")
    val_loss: float | None = described("on the part held out", label="val loss")
    nll: float | None = described("mean −log p of the true class, test part", label="NLL")
    ece: float | None = described("expected calibration error, test part", label="ECE")
    val_metric: float | None = described("a metric of your own", label="val metric", listed=True)
    test_metric: float | None = described("a metric of your own", label="test metric", listed=True)
    seconds: float | None = described("of the training", label="time", listed=True)
    images_per_second: float | None = described("samples trained on")
    trainings: int | None = described("that it took, with a search's and a teacher's")
    curves: str | None = described("quantity → one number per epoch, as JSON", json=True)
    extra: str | None = described("what the method recorded, as JSON", json=True)
    versions: str | None = described("what it was made with, as JSON", json=True)
    commit: str | None = described("of the code")
    error: str | None = described("why it failed")
    host: str | None = described("where it was trained")
    started: float | None = described("seconds since 1970")
    finished: float | None = described("seconds since 1970", label="ended", listed=True)


# Every column, in the order of a row.
_OWN = {item.name: item for item in fields(StoredRun)}
_FIRST = ("key", "status", "attempts")
TABLE: dict[str, Field[Any]] = {name: _OWN[name] for name in _FIRST} | FIELDS | _OWN
LABELS = {name: item.metadata["label"] for name, item in TABLE.items() if item.metadata["label"]}
_SQL = {"str": "TEXT", "int": "INTEGER", "bool": "INTEGER", "float": "REAL"}
_RULES = {
    "key": "TEXT PRIMARY KEY",
    "status": "TEXT NOT NULL CHECK (status IN ('done', 'diverged', 'failed'))",
    "attempts": "INTEGER NOT NULL",
}
COLUMNS = {name: _RULES.get(name, _SQL[kind_of(item)]) for name, item in TABLE.items()}
SCORES = ("val_accuracy", "test_accuracy", "train_accuracy", "train_loss", "val_loss", "nll", "ece")
# A metric of your own: column → its name in `extra`.
METRICS = {"val_metric": "val_metric", "test_metric": "metric"}
WRITTEN = ("curves", "extra", "versions")  # JSON that the store itself writes
OPENED = ("options", *(name for name, item in TABLE.items() if item.metadata.get("json")))
# 0, 1, or the name of a part of your own: SQLite keeps text in a column of numbers as text.
MIXED = tuple(name for name, item in TABLE.items() if "bool | str" in str(item.type))


def own_scores(extra: Mapping[str, Any]) -> dict[str, float]:
    """The values of a metric of your own, among what a run recorded."""
    found = {name: extra.get(recorded) for name, recorded in METRICS.items()}
    return {name: value for name, value in found.items() if isinstance(value, int | float)}


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
