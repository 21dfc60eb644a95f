"""Forty conditions that no fit has seen: the advice is written down first, then they are run.

    python -m research.fresh predict --data-root DATA                   # → results/fresh/predictions.csv; commit it
    python -m research.fresh run --store fresh.db --data-root DATA
    tstar runs export fresh.db results/fresh/store.parquet
    python -m research.fresh tables                                     # → results/fresh/*.csv

Twenty are drawn by the sampler of the second atlas with a new seed, ten have two families of networks and ten three data sets that
the second atlas has not trained on. The advice is that of ``tstar.recommend`` on the untrained model, told how it will be trained. Each condition is
then run plain at the user's rate and at a half-decade above and below it, and as advised, with two seeds.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import tstar
from research import clustered
from research.conditions import (
    DATA,
    FAMILIES,
    NEW_DATA,
    NEW_FAMILIES,
    Condition,
    classes_of,
    draw,
    nice,
)
from research.second_atlas import STEP, Results, accuracy, runs_all
from research.user_gains import MOST, load
from tstar.sweep.execute import DataKey, build_model, load_data
from tstar.sweep.spec import Spec
from tstar.sweep.store import Store

SEED = 23
FOLDER = Path(__file__).resolve().parents[1] / "results" / "fresh"
PREDICTIONS = FOLDER / "predictions.csv"
PARTS: dict[str, tuple[int, Any, Any]] = {
    "a new seed": (20, FAMILIES, DATA),
    "new families": (10, NEW_FAMILIES, DATA),
    "new data sets": (10, {f: k for f, k in FAMILIES.items() if set(k) & set(NEW_DATA)}, NEW_DATA),
}


def conditions() -> Iterator[tuple[str, Condition]]:
    for offset, (part, (count, families, data)) in enumerate(PARTS.items()):
        for index in range(count):
            yield part, draw(index, SEED + offset, families, data)


def advice(spec: Spec, root: str) -> tstar.Recommendation:
    """What a user of this model, these data and this training is told."""
    data = load_data(DataKey.of(spec), root)
    model = build_model(spec, data, root)
    c = spec.config
    return tstar.recommend(
        model,
        data,
        optimizer=c.optimizer,
        lr=c.lr,
        steps=c.steps,
        batch_size=c.batch_size,
        weight_decay=c.weight_decay,
        momentum=c.momentum if c.optimizer == "sgd" else None,
        scheduler=c.schedule if c.schedule != "one-cycle" else None,
        label_smoothing=c.label_smoothing,
        scenario="scratch",
        example_input=data.x_train[:2].float(),
    )


def predict(root: str) -> pd.DataFrame:
    rows = []
    for number, (part, condition) in enumerate(conditions()):
        spec, c = condition.plain, condition.plain.config
        found = advice(spec, root)
        evidence = found.evidence
        rows.append(
            {"number": number, "part": part, "family": condition.family, "dataset": spec.dataset, "M": spec.num_features,
             "K": classes_of(spec), "optimizer": c.optimizer, "lr": c.lr, "batch": c.batch_size, "steps": c.steps,
             "leave": found.leave, "T": nice(found.temperature), "lr_factor": found.lr_factor,
             "expected": 0.0 if found.leave or evidence is None else evidence.median,
             "low": 0.0 if found.leave or evidence is None else evidence.low,
             "high": 0.0 if found.leave or evidence is None else evidence.high}
        )  # fmt: skip
    return pd.DataFrame(rows)


def advised(condition: Condition, row: Any) -> Spec:
    if row["leave"]:
        return condition.plain
    return replace(condition.at(lr=row["lr_factor"]), norm="batch", temperature=float(row["T"]))


def runs(predictions: pd.DataFrame) -> Iterator[Spec]:
    for (_, condition), (_, row) in zip(conditions(), predictions.iterrows(), strict=True):
        for seed in (0, 1):
            yield replace(condition.plain, seed=seed)
            yield replace(advised(condition, row), seed=seed)
        yield from (condition.at(lr=factor) for factor in (STEP, 1 / STEP))


def table(predictions: pd.DataFrame, found: Results) -> pd.DataFrame:
    """One row per condition: what was predicted, and what came."""

    def value(spec: Spec, name: str) -> float:
        share = accuracy(found, spec, name)
        return math.nan if share is None else 100 * share

    rows = []
    for (_, condition), (_, row) in zip(conditions(), predictions.iterrows(), strict=True):
        plain = [value(replace(condition.plain, seed=s), "test_accuracy") for s in (0, 1)]
        told = [value(replace(advised(condition, row), seed=s), "test_accuracy") for s in (0, 1)]
        rates = [condition.at(lr=factor) for factor in (1.0, STEP, 1 / STEP)]
        best = max(rates, key=lambda spec: value(spec, "val_accuracy"))
        rows.append({**row, "plain": np.mean(plain), "advised": np.mean(told), "tuned": value(best, "test_accuracy"),
                     "gain": np.mean(told) - np.mean(plain), "over_tuned": told[0] - value(best, "test_accuracy"),
                     "spread": abs(plain[0] - plain[1])})  # fmt: skip
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    made = []
    for part, some in [
        ("all", rows),
        *rows.groupby("part", sort=False),
        ("changed", rows[~rows["leave"]]),
    ]:
        if len(some) < 2:
            continue
        held = some["gain"].clip(-MOST, MOST)
        mean, low, high = clustered.interval(held, some["dataset"], some["family"])
        changed = some[~some["leave"]]
        inside = (changed["low"] <= changed["gain"]) & (changed["gain"] <= changed["high"])
        made.append({"part": part, "conditions": len(some), "changed": len(changed), "gain": mean, "low": low, "high": high,
                     "median": some["gain"].median(),
                     "over_tuned": some["over_tuned"].clip(-MOST, MOST).mean(), "worst": some["gain"].min(),
                     "best": some["gain"].max(), "inside": inside.mean()})  # fmt: skip
    return pd.DataFrame(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["predict", "run", "tables"])
    parser.add_argument("--store", type=Path, default=Path("fresh.db"))
    parser.add_argument("--data-root", default="")
    given = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    if given.what == "predict":
        predict(given.data_root).to_csv(PREDICTIONS, index=False, float_format="%.5g")
        return
    predictions = pd.read_csv(PREDICTIONS)
    if given.what == "run":
        torch.set_num_threads(1)
        with Store(given.store, create=True) as store:
            for outcome in runs_all(store, runs(predictions), given.data_root, "fresh"):
                print(outcome.key, outcome.status, flush=True)
        return
    rows = table(predictions, load(FOLDER / "store.parquet"))
    rows.to_csv(FOLDER / "conditions.csv", index=False, float_format="%.5g")
    made = summary(rows)
    made.to_csv(FOLDER / "summary.csv", index=False, float_format="%.4g")
    print(made.round(2).to_string(index=False))


if __name__ == "__main__":
    main()
