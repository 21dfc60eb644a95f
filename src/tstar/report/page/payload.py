"""The runs and their learning curves in a form that is small in a file and quick in a browser."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tstar.sweep.columns import json_object
from tstar.text import printable

if TYPE_CHECKING:
    import pandas as pd

# Column → its header. What is the same in all runs is told once, above the table.
SHOWN = {
    **{"key": "run", "status": "status", "dataset": "data set", "model": "model"},
    **{"num_features": "M", "num_classes": "K", "csg": "csg", "method": "method", "norm": "norm"},
    **{"temperature": "T", "scenario": "scenario", "optimizer": "optimizer", "lr": "lr"},
    **{"weight_decay": "weight decay", "epochs": "epochs", "steps": "steps"},
    **{"batch_size": "batch", "label_smoothing": "smoothing", "augment": "augment"},
    **{"num_train": "samples", "seed": "seed", "val_accuracy": "val [%]"},
    **{"test_accuracy": "test [%]", "train_accuracy": "train [%]", "nll": "NLL", "ece": "ECE"},
    **{"seconds": "seconds", "error": "error"},
}
_PERCENT = ("val_accuracy", "test_accuracy", "train_accuracy")
# Decimals of what was measured; other numbers are shown as people write them.
_DIGITS = {**dict.fromkeys(_PERCENT, 2), "csg": 3, "nll": 3, "ece": 3, "seconds": 1}
_ALWAYS = ("key", "status", "dataset", "model", "temperature", "seed")
CURVES = ("train_accuracy", "val_accuracy", "test_accuracy", "train_loss", "val_loss")
MOST_VALUES = 4_000_000  # of all curves together: about 8 MB before compression
MISSING = 65535
_NOTHING: NDArray[np.float32] = np.zeros(0, np.float32)


def runs_payload(frame: pd.DataFrame) -> dict[str, Any]:
    """Columns, each either numbers or levels with codes; ``constant``: those with one value."""
    columns, constant = [], {}
    for name, label in SHOWN.items():
        if name not in frame.columns:
            continue
        values = [_clean(value, name) for value in frame[name].tolist()]
        distinct = set(values)
        if distinct == {None}:
            continue
        if len(distinct) == 1 and name not in _ALWAYS:
            constant[label] = values[0]
            continue
        entry: dict[str, Any] = {"name": name, "label": label}
        if any(isinstance(value, str) for value in values):
            levels = list(dict.fromkeys("" if v is None else str(v) for v in values))
            place = {level: i for i, level in enumerate(levels)}
            entry |= {
                "levels": levels,
                "codes": [place["" if v is None else str(v)] for v in values],
            }
        else:
            entry["values"] = values
            entry |= {"digits": _DIGITS[name]} if name in _DIGITS else {}
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
    return int(number) if number == int(number) else float(f"{number:.6g}")


def curves_payload(texts: Sequence[Any]) -> bytes:
    """Every curve as 16-bit steps between its lowest and highest value.

    Layout, little-endian: the length of a JSON head (uint32) and the head, {"kinds", "count"}, padded
    with spaces to a multiple of 4; then for each kind of curve, ``count`` points kept (uint16), points
    there were (uint16), lows and highs (float32), and all values (uint16; 65535 is missing). A curve
    with more points than there is room for is thinned evenly; its ends stay.
    """
    parsed = [_parse(text) for text in texts]
    kinds = [kind for kind in CURVES if any(kind in curve for curve in parsed)]
    room = max(8, MOST_VALUES // max(1, len(parsed) * max(1, len(kinds))))
    head = json.dumps({"kinds": kinds, "count": len(parsed)}).encode()
    head += b" " * (-len(head) % 4)
    parts = [np.uint32(len(head)).tobytes(), head]
    for kind in kinds:
        kept, total = np.zeros(len(parsed), "<u2"), np.zeros(len(parsed), "<u2")
        low, high = np.zeros(len(parsed), "<f4"), np.zeros(len(parsed), "<f4")
        values = []
        for i, curve in enumerate(parsed):
            full = curve.get(kind, _NOTHING)
            thin = full[thinned(len(full), room)]
            # A long training was not measured after every epoch.
            counted = curve.get("epoch", _NOTHING)
            epochs = int(counted[-1]) if len(counted) and len(full) else len(full)
            kept[i], total[i] = len(thin), min(epochs, MISSING)
            steps, low[i], high[i] = quantize(thin.astype(float))
            values.append(steps)
        parts += [kept.tobytes(), total.tobytes(), low.tobytes(), high.tobytes()]
        parts.append(np.concatenate(values).tobytes() if values else b"")
    return b"".join(parts)


def thinned(length: int, room: int) -> NDArray[np.intp]:
    """Indices of at most ``room`` of ``length`` points, evenly, with both ends."""
    if length <= room:
        return np.arange(length)
    return np.unique(np.round(np.linspace(0, length - 1, room)).astype(np.intp))


def quantize(values: NDArray[np.float64]) -> tuple[NDArray[np.uint16], float, float]:
    """Values as steps of (high − low)/65534, which is finer than any screen; missing as 65535."""
    steps = np.full(len(values), MISSING, "<u2")
    finite = np.isfinite(values)
    if not finite.any():
        return steps, 0.0, 0.0
    low, high = float(values[finite].min()), float(values[finite].max())
    scale = (MISSING - 1) / (high - low) if high > low else 0.0
    steps[finite] = np.round((values[finite] - low) * scale).astype("<u2")
    return steps, low, high


def packed(content: bytes) -> str:
    """zlib and base64: what the page unpacks with the browser's own DecompressionStream."""
    return base64.b64encode(zlib.compress(content, 6)).decode()


def _parse(text: Any) -> dict[str, NDArray[np.float32]]:
    """The curves that a page shows. As arrays: lists of numbers take eight times the memory."""
    return {
        name: np.array([math.nan if v is None else v for v in values], np.float32)
        for name, values in json_object(text).items()
        if name in (*CURVES, "epoch") and isinstance(values, list)
    }
