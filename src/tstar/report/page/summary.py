"""What was run, and what with: the facts on top of a page and at its end."""

from __future__ import annotations

import platform
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from tstar._version import __version__
from tstar.errors import TstarError
from tstar.evidence.regret import number
from tstar.report.records import Records, people, text
from tstar.report.tables.cells import Block, Cell, Table, number_cell, short_cell, text_cell
from tstar.sweep.columns import json_object
from tstar.sweep.provenance import commit
from tstar.text import printable

if TYPE_CHECKING:
    import pandas as pd

_AXES = {
    "model": "models",
    "num_features": "features M",
    "temperature": "temperatures T",
    "norm": "norm before the output layer",
    "method": "methods",
    "optimizer": "optimizers",
    "lr": "learning rates",
    "weight_decay": "weight decays",
    "epochs": "epochs",
    "batch_size": "batch sizes",
    "label_smoothing": "label smoothing",
    "scenario": "scenarios",
    "seed": "seeds",
}


def facts(records: Records) -> list[tuple[str, str]]:
    """Pairs of a word and its value: how many runs, and the values of each axis of the study."""
    frame = records.frame
    found = [("runs", _statuses(frame))]
    for column, label in _AXES.items():
        if column in frame.columns and (listed := values(frame[column])):
            found.append((label, listed))
    if "seconds" in frame.columns and (total := float(frame["seconds"].fillna(0).sum())) > 0:
        found.append(("training time", _hours(total)))
    if "finished" in frame.columns and frame["finished"].notna().any():
        days = [time.strftime("%Y-%m-%d", time.gmtime(t)) for t in frame["finished"].dropna()]
        first, last = min(days), max(days)
        found.append(("finished", first if first == last else f"{first} to {last}"))
    return found


def _statuses(frame: pd.DataFrame) -> str:
    if "status" not in frame.columns:
        return f"{len(frame):,}"
    counts = Counter(frame["status"])
    if len(counts) == 1:
        return f"{len(frame):,}, all {next(iter(counts))}"
    return f"{len(frame):,} (" + ", ".join(f"{n:,} {name}" for name, n in counts.items()) + ")"


def values(column: pd.Series, most: int = 12) -> str:
    """The distinct values of a column, in order; how many there are where they are too many."""
    distinct = sorted(column.dropna().unique(), key=lambda v: (isinstance(v, str), v))
    texts = [people(float(v)) if not isinstance(v, str) else printable(v) for v in distinct]
    if len(texts) > most:
        return f"{len(texts)} values, {texts[0]} to {texts[-1]}"
    return ", ".join(texts)


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 3600 else f"{seconds / 60:.1f} minutes"


def datasets_table(records: Records) -> Table:
    """One row per data set."""
    frame = records.frame
    if "dataset" not in frame.columns:
        raise TstarError("The runs must have a column 'dataset'.")
    rows = []
    for name, part in frame.groupby("dataset", sort=True):

        def first(column: str, part: pd.DataFrame = part) -> Any:
            known = part[column].dropna().tolist() if column in part else []
            return known[0] if known else None

        rows.append(
            (
                text_cell(name),
                text_cell(first("domain")),
                short_cell(number(first("num_classes"))),
                number_cell(number(first("csg")), 3),
                short_cell(number(first("num_train"))),
                Cell(f"{len(part):,}", len(part)),
            )
        )
    return Table(
        "data",
        "Data sets",
        ("data set", "domain", "classes K", "csg", "training samples", "runs"),
        (Block(tuple(rows)),),
        "csg is the cumulative spectral gradient that the sweep computed: higher is harder.",
        labels=2,
    )


def origin(records: Records, command: str) -> list[tuple[str, str]]:
    """Where every number comes from: the command, the store, and the versions of both sides."""
    frame = records.frame
    found = [
        ("command", command),
        ("store", f"{records.name}, SHA-256 {records.checksum}"),
        ("report made with", _made_with()),
        ("the law", records.formula),
        (
            "accuracy",
            f"{records.metric}; the best T of a grid was chosen by {records.chosen_on} accuracy",
        ),
    ]
    if "commit" in frame.columns and (commits := values(frame["commit"])):
        found.append(("code of the runs", f"commit {commits}"))
    found += [(f"runs: {name}", listed) for name, listed in _versions(frame)]
    return found


def _made_with() -> str:
    code = commit()
    at = f" (commit {code})" if code else ""
    return f"tstar {__version__}{at}, Python {platform.python_version()}"


def _versions(frame: pd.DataFrame) -> list[tuple[str, str]]:
    if "versions" not in frame.columns:
        return []
    seen: dict[str, dict[str, None]] = {}
    for line in frame["versions"].dropna().unique():
        for name, value in json_object(line).items():
            seen.setdefault(str(name), {})[text(value)] = None
    return [(name, ", ".join(found)) for name, found in seen.items()]
