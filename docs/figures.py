"""The first figure of the pages in results/, from the files beside them: ``python docs/figures.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd

RESULTS = Path(__file__).resolve().parents[1] / "results"
BLUE, INK, FAINT = "#0072b2", "#222222", "#bbbbbb"


def save(figure: plt.Figure, path: str) -> None:
    figure.savefig(RESULTS / path, dpi=140, metadata={"Software": None})
    plt.close(figure)


def dots(path: str, table: pd.DataFrame, label: str, zero: bool = True) -> None:
    """One row per name: a dot at ``at``, a line from ``low`` to ``high``; the first row is on top."""
    size = (6.4, 0.7 + 0.28 * len(table))
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    rows = range(len(table), 0, -1)
    axes.hlines(rows, table["low"], table["high"], color=BLUE, lw=1.5)
    axes.plot(table["at"], rows, "o", color=BLUE, ms=5)
    if zero:
        axes.axvline(0, color=INK, lw=0.8)
    axes.set_yticks(rows, table["name"])
    axes.set_xlabel(label)
    save(figure, path)


def named(names: pd.Series, at: pd.Series, low: pd.Series, high: pd.Series) -> pd.DataFrame:
    return pd.DataFrame({"name": names, "at": at, "low": low, "high": high})


def variance() -> None:
    table = pd.read_csv(RESULTS / "paper" / "variance.csv")
    table["T"] = table["temperature"].map("T = {:g}".format)
    untrained = table["when"] == "before training"
    table.loc[untrained, "T"] = "untrained"
    names = table["dataset"].str.removesuffix("_32") + ", M = " + table["features"].astype(str)
    share = 100 * table["covariance_share"]
    rows = named(names + ", " + table["T"], share, share.clip(upper=0), share.clip(lower=0))
    dots("paper/variance.png", rows, "share of the covariance in the logits' variance [%]")


def quality() -> None:
    found = []
    draws = {"": "seed 0", "_seed_1": "seed 1, fresh", "_core": "seed 5"}
    for file, draw in draws.items():
        table = pd.read_csv(RESULTS / "quality" / f"mutants{file}.csv")
        share = 100 * table["outcome"].str.startswith("killed").groupby(table["area"]).mean()
        names = pd.Series(share.index, index=share.index) + f" ({draw})"
        found.append(named(names, share, share * 0, share))
    dots("quality/figure.png", pd.concat(found), "planted faults that the tests notice [%]")


if __name__ == "__main__":
    matplotlib.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    matplotlib.rcParams.update({"font.size": 9, "legend.frameon": False})
    for draw in (variance, quality):
        draw()
