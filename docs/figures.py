"""The first figure of results/paper/variance.md, from the file beside it: ``python docs/figures.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pandas as pd

FOLDER = Path(__file__).resolve().parents[1] / "results" / "paper"


def main() -> None:
    """A row per network: a line from zero to its share; the first row is on top."""
    table = pd.read_csv(FOLDER / "variance.csv")
    T = table["temperature"].map("T = {:g}".format)
    T[table["when"] == "before training"] = "untrained"
    names = table["dataset"].str.removesuffix("_32") + ", M = " + table["features"].astype(str)
    share = 100 * table["covariance_share"]
    size = (6.4, 0.7 + 0.28 * len(table))
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    rows = range(len(table), 0, -1)
    axes.hlines(rows, share.clip(upper=0), share.clip(lower=0), color="#0072b2", lw=1.5)
    axes.plot(share, rows, "o", color="#0072b2", ms=5)
    axes.axvline(0, color="#222222", lw=0.8)
    axes.set_yticks(rows, names + ", " + T)
    axes.set_xlabel("share of the covariance in the logits' variance [%]")
    figure.savefig(FOLDER / "variance.png", dpi=140, metadata={"Software": None})


if __name__ == "__main__":
    matplotlib.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    matplotlib.rcParams.update({"font.size": 9, "legend.frameon": False})
    main()
