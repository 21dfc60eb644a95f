"""The paper's networks at M = 512, and fine-tuning for 1,000 steps and more.

tstar sweep studies/paper-networks.toml --store long.db --data-root DATA
tstar sweep studies/finetune-longer.toml --store long.db --data-root DATA     # TSTAR_DATA must name the same folder
tstar runs export long.db results/long/store.parquet
python -m research.long_runs && python -m research.pages
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from research.conditions import tuning_rate
from research.markdown import OPTIMIZERS, table

FOLDER = Path(__file__).resolve().parents[1] / "results" / "long"
NAMES = {"minilm": "MiniLM", "mobilenet": "MobileNetV2", "vgg9": "VGG9", "resnet10": "ResNet10", "pyramidnet10": "PyramidNet10", "minilm_lora": "MiniLM by LoRA"}  # fmt: skip
NONE = "–"


def load() -> pd.DataFrame:
    """The finished runs, in the order of network, rate, norm and T."""
    runs = pd.read_parquet(FOLDER / "store.parquet")
    runs = runs[runs["status"].isin(("done", "diverged"))].copy()
    runs["model"] = runs["model"].str.rpartition(":")[2]
    runs["network"] = runs["model"].map(NAMES)
    runs["dataset"] = runs["dataset"].str.rpartition(":")[2]
    for name in ("val_accuracy", "test_accuracy", "train_accuracy"):
        runs[name] = 100 * runs[name].fillna(1 / runs["num_classes"])
    order = [
        "scenario",
        "network",
        "optimizer",
        "dataset",
        "steps",
        "seed",
        "lr",
        "weight_decay",
        "norm",
        "temperature",
    ]
    columns = ["scenario", "network", "model", "dataset", "optimizer", "steps", "lr", "weight_decay", "norm", "temperature", "seed",
               "val_accuracy", "test_accuracy", "train_accuracy", "ece"]  # fmt: skip
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


def finetuned() -> pd.DataFrame:
    """One row per fine-tuning and seed: the plain model, its best rate by validation, and BatchNorm with T."""
    runs = pd.read_csv(FOLDER / "runs.csv").query("scenario == 'finetune'")
    facts = ["network", "dataset", "optimizer", "steps", "seed"]
    rows = []
    for key, part in runs.groupby(facts, sort=False):
        row: dict[str, object] = dict(zip(facts, key, strict=True))
        usual = tuning_rate(part["model"].iloc[0], part["optimizer"].iloc[0])
        plain = part[part["norm"] == "none"]
        best = plain.loc[plain["val_accuracy"].idxmax()]
        row |= {
            "rates": len(plain),
            "best rate": best["lr"],
            "plain, best rate": best["test_accuracy"],
        }
        with_norm = part[part["norm"] == "batch"]
        at = {
            "plain": plain[plain["lr"] == usual],
            "BN, T = 1": with_norm[(with_norm["lr"] == usual) & (with_norm["temperature"] == 1)],
            "BN, T": with_norm[(with_norm["lr"] == usual) & (with_norm["temperature"] != 1)],
            "BN, T, rate × 3": with_norm[with_norm["lr"] > 2 * usual],
        }
        row |= {name: found["test_accuracy"].mean() for name, found in at.items()}  # none: NaN
        rows.append(row)
    return pd.DataFrame(rows)


def finetuned_table() -> str:
    columns = ["plain", "plain, best rate", "BN, T = 1", "BN, T", "BN, T, rate × 3"]
    lines = [
        [
            f"{row['network']}, {row['dataset']}, {OPTIMIZERS[row['optimizer']]}",
            f"{row['steps']:,}",
            f"{row['seed']}",
            *(NONE if pd.isna(row[name]) else f"{row[name]:.1f}" for name in columns),
            f"{row['BN, T'] - row['plain, best rate']:+.1f}",
        ]
        for _, row in finetuned().iterrows()
    ]
    return table(["network, data, optimizer", "steps", "seed", *columns, "BN, T over plain's best"], lines)  # fmt: skip


def main() -> None:
    load().to_csv(FOLDER / "runs.csv", index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
