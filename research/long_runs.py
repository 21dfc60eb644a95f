"""The paper's networks at M = 512, and fine-tuning for 1,000 steps: one row per run.

tstar sweep studies/paper-networks.toml --store long.db --data-root DATA
tstar sweep studies/finetune-longer.toml --store long.db --data-root DATA     # TSTAR_DATA must name the same folder
tstar runs export long.db results/long/store.parquet
python -m research.long_runs && python -m research.pages
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from research.markdown import table

FOLDER = Path(__file__).resolve().parents[1] / "results" / "long"
NAMES = {"minilm": "MiniLM", "mobilenet": "MobileNetV2", "vgg9": "VGG9", "resnet10": "ResNet10", "pyramidnet10": "PyramidNet10"}  # fmt: skip


def load() -> pd.DataFrame:
    """The finished runs, in the order of network, rate, norm and T."""
    runs = pd.read_parquet(FOLDER / "store.parquet")
    runs = runs[runs["status"].isin(("done", "diverged"))].copy()
    runs["network"] = runs["model"].str.rpartition(":")[2].map(NAMES)
    runs["dataset"] = runs["dataset"].str.rpartition(":")[2]
    for name in ("val_accuracy", "test_accuracy", "train_accuracy"):
        runs[name] = 100 * runs[name].fillna(1 / runs["num_classes"])
    order = ["scenario", "network", "lr", "weight_decay", "norm", "temperature"]
    columns = ["network", "dataset", "optimizer", "steps", "lr", "weight_decay", "norm", "temperature", "seed",
               "val_accuracy", "test_accuracy", "train_accuracy", "ece"]  # fmt: skip
    return runs.sort_values(order, ascending=[False, False, True, True, False, True])[columns]


def recipe(row: pd.Series) -> str:
    return "plain" if row["norm"] == "none" else f"BN, T = {row['temperature']:g}"


def long_table() -> str:
    """Every run, with its gain over the plain model at the usual rate and decay."""
    runs = pd.read_csv(FOLDER / "runs.csv")
    lines = []
    for (network, _), part in runs.groupby(["network", "dataset"], sort=False):
        usual = part[part["norm"] == "none"].iloc[0]
        for _, row in part.iterrows():
            gain = row["test_accuracy"] - usual["test_accuracy"]
            cells = [f"{row['test_accuracy']:.1f}", f"{gain:+.1f}", f"{row['val_accuracy']:.1f}", f"{row['train_accuracy']:.0f}"]  # fmt: skip
            where = f"{network}, {row['dataset']}, {row['steps']:,} steps"
            lines.append([where, recipe(row), f"{row['lr']:g}", f"{row['weight_decay']:g}", *cells])
    return table(["network", "recipe", "rate", "decay", "test %", "over plain", "validation %", "training %"], lines)  # fmt: skip


def main() -> None:
    load().to_csv(FOLDER / "runs.csv", index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
