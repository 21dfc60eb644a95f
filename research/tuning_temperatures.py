"""Which T fine-tuning with AdamW wants at the advised rate: runs beside the second atlas's, of its own conditions.

    python -m research.tuning_temperatures --store atlas2.db --data-root DATA     # → the runs, and the table

The atlas has T = 2 alone at three times the rate, since training from scratch hardly depends on T with AdamW. Here its fine-tuning
conditions with AdamW get T = ¼, ½ and 1 there as well, with two seeds. Validation accuracy chooses, averaged over the conditions: the T nearest
to 1 that is within one standard error of the best.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch

from research.conditions import TUNED, TUNING, Condition, data_of, draw
from research.running import Results, by_identity, run_all
from research.second_atlas import FASTER, accuracy
from tstar.lab.sweep.spec import Spec
from tstar.lab.sweep.store import Store

OUTPUT = Path(__file__).resolve().parents[1] / "results" / "atlas2" / "tuning_temperatures.csv"
TEMPERATURES = (0.25, 0.5, 1.0, 2.0)
SEEDS = (0, 1)


def conditions() -> Iterator[Condition]:
    """Those of the atlas's fine-tuning conditions that train with AdamW."""
    for index in range(TUNING, TUNING + len(TUNED)):
        condition = draw(index)
        if condition.plain.config.optimizer == "adamw":
            yield condition


def at(condition: Condition, T: float, seed: int) -> Spec:
    """BN and T at the advised rate."""
    return replace(condition.at(lr=FASTER[0]), temperature=T, norm="batch", seed=seed)


def table(found: Results) -> pd.DataFrame:
    """One row per condition and T, the means over both seeds, in points; only conditions with all runs."""
    rows = []
    for condition in conditions():
        grid = {T: [at(condition, T, seed) for seed in SEEDS] for T in TEMPERATURES}
        if any(accuracy(found, spec) is None for specs in grid.values() for spec in specs):
            continue
        user = condition.plain
        for T, specs in grid.items():
            means = {
                name: 100 * sum(accuracy(found, spec, name) or 0.0 for spec in specs) / len(specs)
                for name in ("val_accuracy", "test_accuracy")
            }
            facts = {
                "condition": condition.index,
                "network": condition.family,
                "dataset": data_of(user),
            }
            rows.append({**facts, "steps": user.config.steps, "lr": specs[0].config.lr, "T": T, **means})  # fmt: skip
    return pd.DataFrame(rows)


def chosen(made: pd.DataFrame) -> float:
    """The T nearest to 1 whose validation accuracy is within one standard error of the best one's, over the conditions."""
    wide = made.pivot(index="condition", columns="T", values="val_accuracy")
    best = wide[wide.mean().idxmax()]
    behind = wide.rsub(best, axis=0)
    level = behind.mean() <= behind.std(ddof=1) / math.sqrt(len(wide))
    return float(min(wide.columns[level], key=lambda T: abs(math.log(T))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--data-root", required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    specs = [at(c, T, seed) for seed in SEEDS for c in conditions() for T in TEMPERATURES]
    with Store(given.store, create=True) as store:
        for outcome in run_all(store, specs, given.data_root, "atlas2"):
            print(outcome.key, outcome.status, flush=True)
        made = table(by_identity(store.rows()))
    made.round({"val_accuracy": 2, "test_accuracy": 2}).to_csv(OUTPUT, index=False)
    print(made.round(1).to_string(index=False))
    print(made.groupby("T")[["val_accuracy", "test_accuracy"]].mean().round(2), chosen(made))


if __name__ == "__main__":
    main()
