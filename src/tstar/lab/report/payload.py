"""The runs and their learning curves in a form that is small in a file and quick in a browser."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tstar.lab.cells import plain
from tstar.lab.sweep.columns import json_object
from tstar.text import printable

# Column → its header. What is the same in all runs stands once, with each run.
SHOWN = {
    **{"key": "run", "status": "status", "dataset": "data set", "model": "model"},
    **{"num_features": "M", "num_classes": "K", "csg": "csg", "method": "method", "norm": "norm"},
    **{"temperature": "T", "scenario": "scenario", "optimizer": "optimizer", "lr": "lr"},
    **{"weight_decay": "weight decay", "epochs": "epochs", "steps": "steps", "loss": "loss"},
    **{"metric": "metric", "batch_size": "batch", "label_smoothing": "smoothing"},
    **{"augment": "augment", "samples": "samples", "seed": "seed", "val_accuracy": "val [%]"},
    **{"test_accuracy": "test [%]", "train_accuracy": "train [%]", "nll": "NLL", "ece": "ECE"},
    **{"seconds": "seconds", "error": "error"},
}
_PERCENT = ("val_accuracy", "test_accuracy", "train_accuracy")
# Decimals of what was measured; other numbers are shown as people write them.
_DIGITS = {**dict.fromkeys(_PERCENT, 2), "csg": 3, "nll": 3, "ece": 3, "seconds": 1}
_ALWAYS = ("key", "status", "dataset", "model", "temperature", "seed")
CURVES = ("train_accuracy", "val_accuracy", "test_accuracy", "train_loss", "val_loss")
_MOST = 1_000_000  # values of all curves together
_ROOM = (8, 200)  # points of one curve


def runs_payload(frame: pd.DataFrame) -> dict[str, Any]:
    """Columns, each either numbers or levels with codes; ``constant``: those with one value."""
    columns, constant = [], {}
    for name, label in SHOWN.items():
        values = [_clean(value, name) for value in frame.get(name, ())]
        if not set(values) - {None}:
            continue
        if len(set(values)) == 1 and name not in _ALWAYS:
            constant[label] = values[0]
            continue
        entry: dict[str, Any] = {"name": name, "label": label}
        if any(isinstance(value, str) for value in values):
            codes, levels = pd.factorize(np.array([str(v or "") for v in values], dtype=object))
            entry |= {"levels": levels.tolist(), "codes": codes.tolist()}
        else:
            entry |= {"values": values, **({"digits": _DIGITS[name]} if name in _DIGITS else {})}
        columns.append(entry)
    return {"count": len(frame), "columns": columns, "constant": constant}


def _clean(value: Any, name: str) -> Any:
    """A JSON value: six digits of a number, eight of a key, the last line of an error."""
    if value is None or value != value:
        return None
    if isinstance(value, str):
        if name == "key":
            return value[:8]
        return printable(value.strip().rpartition("\n")[2][:200] if name == "error" else value)
    number = float(value) * (100 if name in _PERCENT else 1)
    return int(number) if number.is_integer() else plain(float(f"{number:.6g}"))


def curves_payload(texts: Sequence[Any]) -> list[dict[str, list[Any]]]:
    """For each run and kind of curve: epochs, values, and how many there were; thinned if many."""
    room = int(np.clip(_MOST // max(1, len(texts) * len(CURVES)), *_ROOM))
    found: list[dict[str, list[Any]]] = []
    for text in texts:
        stored = json_object(text)
        found.append({})
        for kind in CURVES:
            values = _numbers(stored.get(kind))
            if not values:
                continue
            epochs = _numbers(stored.get("epoch"))
            if len(epochs) != len(values) or None in epochs:
                epochs = [*range(1, len(values) + 1)]
            shown = np.unique(np.round(np.linspace(0, len(values) - 1, room)).astype(int))
            numbers = [None if values[i] is None else float(f"{values[i]:.4g}") for i in shown]
            found[-1][kind] = [[int(epochs[i]) for i in shown], numbers, len(values)]
    return found


def _numbers(values: Any) -> list[Any]:
    """A stored curve as finite numbers and gaps; what is no list, or no number, is none."""
    found = plain(values) if isinstance(values, list) else []
    return [one if isinstance(one, int | float) else None for one in found]


def packed(content: Any) -> str:
    """zlib and base64: what the page unpacks with the browser's own DecompressionStream."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode()
