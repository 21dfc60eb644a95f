"""Stores and exports of before the record: ``python -m research.migrate OLD NEW`` (.db or .parquet).

A run's key becomes a hash of what differs from the defaults, ``num_train`` and ``train_samples`` become ``samples``, and
the columns ``mixup``, ``dropout`` and ``ema`` go. The old key is computed anew from each stored spec, which shows that
the spec was read as it was meant; then rows, accuracies and keys are compared one to one, and what was compared is printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import pandas as pd

from tstar.errors import TstarError
from tstar.lab.sweep.spec import COLUMNS, FIELDS, Spec, json_object, own_scores
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.transfer import load_runs, rows_of

# How an old key was made: fields that were left out at these values, and what an optimizer did not read.
_NONE = "trunk_features depth classes train_samples csg source clip_norm metric"
UNUSED: dict[str, Any] = dict.fromkeys(_NONE.split()) | dict(
    label_noise=0.0, backbone="as-is", data_seed=0, nesterov=False, beta1=0.9, beta2=0.999
)
UNUSED |= dict(loss="cross-entropy", head_lr=1.0, head_init="own")
IGNORED = {"sgd": ("beta1", "beta2"), **dict.fromkeys(("adam", "adamw"), ("momentum", "nesterov"))}
GONE = {
    "mixup": 0.0,
    "dropout": 0.0,
    "ema": 0.0,
    "backbone": "as-is",
}  # and what they were if unused
SAME = [
    "val_accuracy",
    "test_accuracy",
    "train_accuracy",
    "nll",
    "status",
    "seed",
    "model",
    "dataset",
]


def old_key(asked: Mapping[str, Any]) -> str:
    """The key that a stored spec had."""
    unread = {
        *IGNORED.get(asked["optimizer"], ()),
        *(["epochs"] if asked["steps"] is not None else []),
    }
    gone = {name for name in ("mixup", "dropout", "ema") if not asked.get(name)}
    content = {
        n: v
        for n, v in asked.items()
        if n not in unread | gone and (n not in UNUSED or v != UNUSED[n])
    }
    text = json.dumps(content | {"protocol": 1}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def new_spec(asked: Mapping[str, Any]) -> Spec:
    """The spec of today; one that used what is no more is refused by name."""
    if used := {n: asked[n] for n, unused in GONE.items() if asked.get(n, unused) != unused}:
        raise TstarError(f"A run has {used}, which no field has any more; leave it out first.")
    known = {name: value for name, value in asked.items() if name not in GONE}
    known["samples"] = known.pop("train_samples", None)
    return Spec(**{name: value for name, value in known.items() if value is not None})


def new_row(row: Mapping[str, Any], spec: Spec, teachers: Mapping[str, str]) -> dict[str, Any]:
    """A row of today; a column that the old store did not have gets what its runs had there."""
    made = {name: row.get(name) for name in COLUMNS}
    for name, item in FIELDS.items():
        if made[name] is None and item.default not in (None, MISSING):
            made[name] = item.default
    asked = json_object(row["spec"])
    if isinstance(asked.get("augment"), str):  # older stores have 1 in its place
        made["augment"] = asked["augment"]
    if row.get("metric") is not None and made["test_metric"] is None:
        made |= own_scores(json_object(row["extra"]))
    made |= {"key": spec.key, "spec": json.dumps(spec.to_dict()), "samples": row["num_train"]}
    return made | {"teacher": teachers.get(row["teacher"], row["teacher"])}


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of an old store or export; runs that were under way when a sweep was killed are missing."""
    if path.suffix == ".parquet":
        table = pd.read_parquet(path)
        return rows_of(table[table["status"] != "running"])
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        found = db.execute("SELECT * FROM runs WHERE status != 'running' ORDER BY rowid")
        return [dict(row) for row in found]


def migrate(old: Path, new: Path) -> dict[str, str]:
    """Write the new store or export; returns old key → new key."""
    if new.exists():
        raise TstarError(f"{str(new)!r} exists already; choose another name.")
    before = read(old)
    specs = {row["key"]: json_object(row["spec"]) for row in before}
    wrong = [key for key, asked in specs.items() if old_key(asked) != key]
    made = {key: new_spec(asked) for key, asked in specs.items()}
    keys = {key: spec.key for key, spec in made.items()}
    twins = [key for key, count in Counter(keys.values()).items() if count > 1]
    if wrong or twins:
        raise TstarError(
            f"{len(wrong)} old keys do not fit their specs, {len(twins)} new keys are of several runs: {wrong[:3]} {twins[:3]}"
        )
    rows = [new_row(row, made[row["key"]], keys) for row in before]
    if new.suffix == ".parquet":
        export(rows, new)
    else:
        with Store(new, create=True) as store:
            for row in rows:
                store.insert(row)
        for kind in ("weights", "checkpoints"):
            for old_name, name in keys.items():
                file = Path(f"{old}.{kind}", f"{old_name}.pt")
                if file.exists():
                    target = Path(f"{new}.{kind}", f"{name}.pt")
                    target.parent.mkdir(exist_ok=True)
                    shutil.copyfile(file, target)
    compare(before, new, keys)
    return keys


def export(rows: list[dict[str, Any]], path: Path) -> None:
    kinds = {"TEXT": "string", "INTEGER": "Int64", "REAL": "float64"}
    table = pd.DataFrame(rows, columns=[*COLUMNS])
    mixed = table["augment"].map(type).eq(str).any()
    types = {
        n: kinds[kind.partition(" ")[0]]
        for n, kind in COLUMNS.items()
        if n != "augment" or not mixed
    }
    if mixed:
        table["augment"] = table["augment"].map(
            lambda v: str(int(v)) if isinstance(v, int | float) else v
        )
        types["augment"] = "string"
    table.astype(types).to_parquet(path, index=False)


def compare(before: list[dict[str, Any]], new: Path, keys: Mapping[str, str]) -> None:
    """Rows, accuracies and keys of both, one to one, as they are read again."""
    after = {row["key"]: row for row in rows_of(load_runs(new))}
    assert len(after) == len(before) == len({*keys.values()}), (len(after), len(before))
    for row in before:
        other = after[keys[row["key"]]]
        assert other["samples"] == row["num_train"], row["key"]
        for name in SAME:
            assert other[name] == row[name], (row["key"], name, row[name], other[name])
    total = sum(row["test_accuracy"] or 0 for row in before)
    again = sum(after[keys[row["key"]]]["test_accuracy"] or 0 for row in before)
    print(
        f"{new}: {len(before)} rows before, {len(after)} after; {len({*keys.values()})} keys, one to one; test accuracies sum to {total:.6f} and {again:.6f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    given = parser.parse_args()
    migrate(given.old, given.new)


if __name__ == "__main__":
    main()
