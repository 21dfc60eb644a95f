"""Two small trainings beside the paper's: the start of the output layer, and a row of its Figs. 5 and 6.

tstar sweep studies/head-init.toml --store trained.db
tstar sweep studies/paper-row.toml epochs=15 --store trained.db
tstar runs export trained.db results/paper/store.parquet && python -m research.paper.trained
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd

from research.markdown import fill, table
from research.trainings import EVIDENCE

RESULTS = Path(__file__).resolve().parents[2] / "results"


def runs(dataset: str, path: Path = RESULTS / "paper" / "store.parquet") -> pd.DataFrame:
    every = pd.read_parquet(path).query("dataset == @dataset and status == 'done'")
    return every.assign(test=100 * every["test_accuracy"], train=100 * every["train_accuracy"])


def head_init() -> str:
    """Test accuracy of every network and start, and what T* gains over T = 1, seed by seed."""
    lines = []
    for (model, start), part in runs("gtsrb_32").groupby(["model", "head_init"]):
        by_seed = part.pivot(index="seed", columns="method", values="test")
        ways = (by_seed["default"], by_seed["ours-cn"], by_seed["ours-cn"] - by_seed["default"])
        cells = [f"{way.mean():.1f} ± {way.std():.1f}" for way in ways]
        name = {"own": "its own", "paper": "the paper's"}[start]
        lines.append([model, name, *cells, str(len(by_seed))])
    return table(["network", "start", "plain, T = 1", "BN, T*", "T* over T = 1", "seeds"], lines)


def row() -> str:
    """Test accuracy (and of the training set) at each T; the runs of 200 epochs are the standard atlas's."""
    longer = runs("cifar10_whole", EVIDENCE / "standard.parquet").query("num_features == 64")
    every = pd.concat([runs("cifar10_whole"), longer])
    cells = every.set_index(["epochs", "norm", "temperature"])[["test", "train"]].to_dict("index")
    grid, lines = (1, 4, 16, 64), []
    names = {"none": "without BN (Fig. 5)", "batch": "with BN (Fig. 6)"}
    for epochs, norm in itertools.product(sorted({key[0] for key in cells}), names):
        both = [cells.get((epochs, norm, T)) for T in grid]
        values = ("–" if b is None else f"{b['test']:.1f} ({b['train']:.1f})" for b in both)
        lines.append([f"{epochs} epochs, {names[norm]}", *values])
    return table(["test (training) accuracy [%]", *(f"T = {T:g}" for T in grid)], lines)


def main() -> None:
    """Put the tables between the marks of the pages."""
    for name, made in (("head-init", head_init), ("row", row)):
        fill(RESULTS / "paper" / f"{name}.md", name, made())


if __name__ == "__main__":
    main()
