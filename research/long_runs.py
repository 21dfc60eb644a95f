"""The paper's networks at M = 512, and fine-tuning for 1,000 steps and more.

tstar sweep studies/paper-networks.toml --store long.db --data-root DATA
tstar sweep studies/finetune-longer.toml --store long.db --data-root DATA     # TSTAR_DATA must name the same folder
tstar runs export long.db results/long/store.parquet
python -m research.long_runs && python -m research.pages
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd

from research.conditions import KIND_OF, USUAL, tuning_rate
from research.markdown import OPTIMIZERS, table

FOLDER = Path(__file__).resolve().parents[1] / "results" / "long"
NAMES = {"minilm": "MiniLM", "mobilenet": "MobileNetV2", "vgg9": "VGG9", "resnet10": "ResNet10", "pyramidnet10": "PyramidNet10", "minilm_lora": "MiniLM by LoRA"}  # fmt: skip
NONE = "–"
FAMILIES = {"vgg9": "vgg", "resnet10": "resnet", "pyramidnet10": "pyramidnet"}
FIRST = {"scratch": 40_000, "finetune": 41_000}  # numbers among the conditions of the second atlas


def load() -> pd.DataFrame:
    """The finished runs, in the order of network, rate, norm and T."""
    runs = pd.read_parquet(FOLDER / "store.parquet")
    runs = runs[runs["status"].isin(("done", "diverged"))].copy()
    runs["model"] = runs["model"].str.rpartition(":")[2]
    runs["network"] = runs["model"].map(NAMES)
    runs["dataset"] = runs["dataset"].str.rpartition(":")[2]
    for name in ("val_accuracy", "test_accuracy", "train_accuracy"):
        runs[name] = 100 * runs[name].fillna(1 / runs["num_classes"])
    order = ["scenario", "network", "optimizer", "dataset", "steps", "seed", "lr", "weight_decay", "norm", "temperature"]  # fmt: skip
    runs = runs.rename(columns={"batch_size": "batch", "num_features": "M", "num_classes": "K"})
    runs["samples"] = (runs["num_train"] * (1 - runs["val_fraction"])).round().astype(int)
    columns = ["scenario", "network", "model", "dataset", "optimizer", "steps", "lr", "weight_decay", "norm", "temperature", "seed",
               "val_accuracy", "test_accuracy", "train_accuracy", "ece", "M", "K", "samples", "batch", "momentum", "schedule", "key"]  # fmt: skip
    return runs.sort_values(
        order, ascending=[False, False, False, True, True, True, True, True, False, True]
    )[columns]


def recipe(row: pd.Series) -> str:
    return "plain" if row["norm"] == "none" else f"BN, T = {row['temperature']:g}"


def long_table() -> str:
    """Every run from scratch, with its gain over the plain model at the usual rate and decay."""
    runs = pd.read_csv(FOLDER / "runs.csv").query("scenario == 'scratch'")
    lines = []
    for (network, seed), part in runs.groupby(["network", "seed"], sort=False):
        usual = part[part["norm"] == "none"].iloc[0]
        for _, row in part.iterrows():
            gain = row["test_accuracy"] - usual["test_accuracy"]
            cells = [f"{row['test_accuracy']:.1f}", f"{gain:+.1f}", f"{row['val_accuracy']:.1f}", f"{row['train_accuracy']:.0f}"]  # fmt: skip
            where = f"{network}, {row['steps']:,} steps, seed {seed}"
            lines.append([where, recipe(row), f"{row['lr']:g}", f"{row['weight_decay']:g}", *cells])
    return table(["network", "recipe", "rate", "decay", "test %", "over plain", "validation %", "training %"], lines)  # fmt: skip


def conditions(scenario: str) -> pd.DataFrame:
    """One row per training, with the columns of :func:`research.user_gains.table` that its runs can fill.

    Accuracies are of the first seed; of the second, where there is one, under the same name with ``_1``.
    """
    runs = load()
    runs = runs[runs["scenario"] == scenario]
    facts = ["model", "dataset", "optimizer", "steps", "batch", "M", "K", "samples", "momentum", "schedule"]  # fmt: skip
    rows = []
    for number, (key, part) in enumerate(runs.groupby(facts, sort=False, dropna=False)):
        row = dict(zip(facts, key, strict=True))
        family = FAMILIES.get(row["model"], row["model"])
        norms = KIND_OF.get(family, "batch-norms")
        lr = tuning_rate(family, row["optimizer"]) if scenario == "finetune" else USUAL[row["optimizer"], norms][0]  # fmt: skip
        plain = part[(part["norm"] == "none") & (part["seed"] == 0)]
        tuned = plain.loc[plain["val_accuracy"].idxmax()]
        usual, own = (lr, part["weight_decay"].min()), (tuned["lr"], tuned["weight_decay"])
        row |= {
            "condition": FIRST[scenario] + number,
            "family": family,
            "network": family,
            "norms": norms,
            "lr": lr,
            "tuned_lr": tuned["lr"] / lr,
            "tuned_decay": tuned["weight_decay"],
            "searched": math.nan,
            "keys": json.dumps([key[:8] for key in part["key"]]),
        }
        for seed, end in ((0, ""), (1, "_1")):
            mine = part[part["seed"] == seed]
            bare, with_norm = mine[mine["norm"] == "none"], mine[mine["norm"] == "batch"]
            at_one = with_norm["temperature"] == 1
            for name, found, (rate, decay) in (
                ("plain", bare, usual),
                ("plain_faster", bare, (3 * lr, usual[1])),
                ("tuned", bare, own),
                ("bn1", with_norm[at_one], usual),
                ("bn", with_norm[~at_one], usual),
                ("faster_bn", with_norm[~at_one], (3 * lr, usual[1])),
                ("fastest_bn", with_norm[~at_one], (10 * lr, usual[1])),
                ("tuned_bn1", with_norm[at_one], own),
                ("tuned_bn", with_norm[~at_one], own),
            ):
                there = np.isclose(found["lr"], rate) & np.isclose(found["weight_decay"], decay)
                row[f"{name}{end}"] = found.loc[there, "test_accuracy"].mean()  # no run: NaN
        rows.append(row)
    return pd.DataFrame(rows)


def finetuned_table() -> str:
    columns = ["plain", "tuned", "bn1", "bn", "faster_bn"]
    lines = [
        [
            f"{NAMES[row['model']]}, {row['dataset']}, {OPTIMIZERS[row['optimizer']]}",
            f"{row['steps']:,}",
            f"{seed}",
            *(
                NONE if pd.isna(value := row[f"{name}{end}"]) else f"{value:.1f}"
                for name in columns
            ),
            f"{row[f'bn{end}'] - row[f'tuned{end}']:+.1f}",
        ]
        for _, row in conditions("finetune").iterrows()
        for seed, end in ((0, ""), (1, "_1"))
        if not pd.isna(row[f"bn{end}"])
    ]
    return table(["network, data, optimizer", "steps", "seed", "plain", "plain, best rate", "BN, T = 1", "BN, T", "BN, T, rate × 3",
                  "BN, T over plain's best rate"], lines)  # fmt: skip


def main() -> None:
    load().to_csv(FOLDER / "runs.csv", index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
