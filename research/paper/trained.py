"""Two small trainings beside the paper's: the start of the output layer, and a row of its Figs. 5 and 6.

tstar sweep studies/head-init.toml --store trained.db
tstar sweep studies/paper-row.toml epochs=15 --store trained.db
tstar runs export trained.db results/paper/store.parquet && python -m research.pages
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from research.markdown import table

STORE = Path(__file__).resolve().parents[2] / "results" / "paper" / "store.parquet"


def runs(dataset: str) -> pd.DataFrame:
    every = pd.read_parquet(STORE).query("dataset == @dataset and status == 'done'")
    return every.assign(test=100 * every["test_accuracy"], train=100 * every["train_accuracy"])


def head_init() -> str:
    """Test accuracy of every network and start, and what T* gains over T = 1, seed by seed."""
    lines = []
    for (model, start), part in runs("gtsrb_32").groupby(["model", "head_init"]):
        by_seed = part.pivot(index="seed", columns="method", values="test")
        ways = (by_seed["default"], by_seed["ours-cn"], by_seed["ours-cn"] - by_seed["default"])
        cells = [f"{way.mean():.1f} ± {way.std():.1f}" for way in ways]
        lines.append([model, {"own": "its own", "paper": "the paper's"}[start], *cells, str(len(by_seed))])  # fmt: skip
    return table(["network", "start", "plain, T = 1", "BN, T*", "T* over T = 1", "seeds"], lines)


def row() -> str:
    """Test accuracy (and of the training set) without and with BN at each T."""
    cells = runs("cifar10_whole").set_index(["norm", "temperature"])[["test", "train"]]
    grid, lines = (1, 4, 16, 64), []
    for norm, name in {"none": "without BN (Fig. 5)", "batch": "with BN (Fig. 6)"}.items():
        both = [cells.loc[(norm, T)] if (norm, T) in cells.index else None for T in grid]
        lines.append([name, *("–" if b is None else f"{b['test']:.1f} ({b['train']:.1f})" for b in both)])  # fmt: skip
    return table(["test (training) accuracy [%]", *(f"T = {T:g}" for T in grid)], lines)
