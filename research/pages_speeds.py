"""The tables of the page on the three speeds (research.pages puts them in)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from research.markdown import table as table_of
from research.speeds import FOLDER


def speeds() -> str:
    """What each recipe gives over plain in the core of the speeds, at four points."""
    table = pd.read_csv(FOLDER / "summary.csv")
    table = table[table["part"] == "core"]
    lines = []
    for point, part in table.groupby("point", sort=False):
        for _, row in part.iterrows():
            gain = f"{row['gain']:+.1f} ({row['low']:+.1f} to {row['high']:+.1f})"
            lines.append([f"{point}: {row['recipe']}", f"{row['conditions']}", gain, f"{row['worst']:+.1f}", f"{row['best']:+.1f}", f"{row['gain_ece']:+.1f}"])  # fmt: skip
    return table_of(["recipe, T by validation", "conditions", "points over plain (95 %)", "worst", "best", "ECE lower by"], lines)  # fmt: skip


def forgiving() -> str:
    """What a learning rate that is off costs each recipe, mean over conditions."""
    table = pd.read_csv(FOLDER / "sensitivity.csv")
    table = table[(table["part"] == "core") & table["off"].isin((0.32, 3.16, 10.0))]
    cells = table.pivot_table(
        index=["recipe", "T"], columns="off", values="loss", aggfunc=["mean", "size"]
    )
    lines = []
    for (recipe, T), row in cells.iterrows():
        name = (
            recipe
            if recipe == "plain"
            else f"{recipe} = {T:g}".replace("T, matched =", "matched, T =").replace(
                "T, ×T =", "×T, T ="
            )
        )
        shown = [
            "–"
            if pd.isna(row["mean"].get(off))
            else f"{row['mean'][off]:.1f} (n = {row['size'][off]:.0f})"
            for off in (0.32, 3.16, 10.0)
        ]
        lines.append([name, *shown])
    return table_of(["points lost", "rate ÷ 3.2", "rate × 3.2", "rate × 10"], lines)


def parts() -> str:
    """The parts of the speeds beside the core: what BN with T gives over plain, and at matched speed."""
    table = pd.read_csv(FOLDER / "summary.csv")
    table = table[table["part"] != "core"]
    lines = []
    for (part, point), rows in table.groupby(["part", "point"], sort=False):
        by = rows.set_index("recipe")
        cells = []
        for recipe in ("BN, T", "BN, T, matched"):
            if recipe not in by.index:
                cells.append("–")
                continue
            row = by.loc[recipe]
            spread = "one" if row["conditions"] == 1 else f"{row['worst']:+.1f} to {row['best']:+.1f}, n = {row['conditions']:.0f}"  # fmt: skip
            cells.append(f"{row['gain']:+.1f} ({spread}); ECE {row['gain_ece']:+.1f}")
        lines.append([f"{part}, {point}", *cells])
    return table_of(
        ["points over plain (worst to best condition); ECE lower by", "BN, T", "matched"], lines
    )


def walks() -> str:
    """What a temperature costs by the head's walk, mean over conditions and rates."""
    table = pd.read_csv(FOLDER / "walk.csv")
    table = table[(table["part"] == "core") & np.isclose(table["weight_decay"], 5e-4)]
    edges = [0, 0.1, 0.4, 1.6, 6.4, 25.6, math.inf]
    names = ["below 0.1", "0.1 to 0.4", "0.4 to 1.6", "1.6 to 6.4", "6.4 to 26", "above 26"]
    table = table.assign(range=pd.cut(table["walk"], edges, labels=names))
    cells = table.pivot_table(index="recipe", columns="range", values="lost", aggfunc=["mean", "size"], observed=False)  # fmt: skip
    lines = []
    for recipe, row in cells.iterrows():
        shown = [f"{row['mean'][n]:.1f} (n = {row['size'][n]:.0f})" if row["size"].get(n) else "–" for n in names]  # fmt: skip
        lines.append([str(recipe), *shown])
    return table_of(["points below the best T, by lr·steps·M/(T²·K)", *names], lines)


def batches() -> str:
    """Where T is best with other batches and momenta, one line per network."""
    table = pd.read_csv(FOLDER / "best_temperature.csv")
    table = table[table["part"] == "batch and momentum"]
    lines = []
    for (model, batch, momentum, lr), rows in table.groupby(["model", "batch_size", "momentum", "lr"]):  # fmt: skip
        by = rows.set_index("recipe")["T"]
        shown = [f"{by[r]:g}" if r in by.index else "–" for r in ("BN, T", "BN, T, matched")]
        lines.append([f"{model}, batch {batch}, momentum {momentum:g}, lr {lr:g}", *shown])
    return table_of(["best T (of 1, 2, 4, 8, 16)", "BN, T", "matched"], lines)


TABLES: dict[str, Callable[[], str]] = {
    "speeds": speeds,
    "forgiving": forgiving,
    "speed-parts": parts,
    "walks": walks,
    "speed-batches": batches,
}
