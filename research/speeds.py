"""What a temperature does beside a learning rate and a weight decay: the tables of results/speeds.

    tstar sweep studies/speeds.toml --store speeds.db --data-root DATA
    tstar runs export speeds.db results/speeds/store.parquet
    python -m research.speeds                # the tables, from results/speeds/store.parquet

Validation accuracy (mean over seeds) chooses, test accuracy scores. Differences are paired by seed. A run that diverged counts
as chance. A recipe is compared with plain in a condition only where both have been run with the same seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(__file__).resolve().parents[1] / "results" / "speeds"
# What makes a condition; learning rate, weight decay, recipe, T and seed vary inside it.
CONDITION = ["part", "model", "dataset", "optimizer", "batch_size", "momentum", "num_features", "steps",
             "train_samples", "label_noise", "augment"]  # fmt: skip
PLAIN = "plain"
RECIPES = {
    ("none", "as-is"): "T",
    ("none", "times-t"): "T, matched",
    ("batch", "as-is"): "BN, T",
    ("batch", "matched"): "BN, T, matched",
    ("batch", "times-t"): "BN, T, ×T",
}
WALKS = ("BN, T", "BN, T, matched")
USUAL = {"sgd": (0.1, 5e-4), "adamw": (1e-3, 0.01)}


def load(path: Path = FOLDER / "store.parquet") -> pd.DataFrame:
    """The finished runs, with their recipe and their part of the study."""
    runs = pd.read_parquet(path)
    runs = runs[runs["status"].isin(("done", "diverged"))].copy()
    for column in ("val_accuracy", "test_accuracy"):
        runs[column] = 100 * runs[column].fillna(1 / runs["num_classes"])
    plain = (runs["norm"] == "none") & (runs["temperature"] == 1)
    named = [RECIPES[pair] for pair in zip(runs["norm"], runs["backbone"], strict=True)]
    runs["recipe"] = np.where(plain, PLAIN, named)
    runs["part"] = np.select(
        [
            runs["optimizer"] == "adamw",
            runs["steps"] > 400,
            (runs["batch_size"] != 64) | (runs["momentum"] != 0.9),
            runs["num_features"] > 512,
            runs["label_noise"] > 0,
            runs["model"] == "vit4",
        ],
        ["AdamW", "long", "batch and momentum", "wide", "wrong labels", "transformer"],
        "core",
    )
    return runs


def cells(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per condition, recipe, lr, decay and T: the means over seeds, and the seeds."""
    by = [*CONDITION, "recipe", "lr", "weight_decay", "temperature"]
    table = runs.groupby(by, dropna=False).agg(
        val=("val_accuracy", "mean"),
        test=("test_accuracy", "mean"),
        train=("train_accuracy", "mean"),
        nll=("nll", "mean"),
        ece=("ece", "mean"),
        seeds=("seed", "nunique"),
    )
    return table.reset_index()


def noise(runs: pd.DataFrame) -> float:
    """The standard deviation of test accuracy between seeds, all else equal, pooled."""
    by = [*CONDITION, "recipe", "lr", "weight_decay", "temperature"]
    groups = runs.groupby(by, dropna=False)["test_accuracy"]
    sizes, variances = groups.transform("size"), groups.transform("var")
    return float(np.sqrt(variances[sizes > 1].mean()))


def best(table: pd.DataFrame) -> pd.Series | None:
    """The cell with the best validation accuracy, among those with as many seeds as any."""
    full = table[table["seeds"] == table["seeds"].max()]
    return None if full.empty else full.loc[full["val"].idxmax()]


def points(
    plain: pd.DataFrame, optimizer: str
) -> dict[str, Callable[[pd.DataFrame], pd.DataFrame]]:
    """Where recipes are compared: the usual recipe, plain's best rate, plain's best rate and decay, each its own best."""
    lr, decay = USUAL[optimizer]
    rate = best(plain[plain["weight_decay"] == decay])
    both = best(plain)

    def at(lr: float, decay: float) -> Callable[[pd.DataFrame], pd.DataFrame]:
        return lambda t: t[np.isclose(t["lr"], lr) & np.isclose(t["weight_decay"], decay)]

    found = {"usual rate and decay": at(lr, decay)}
    if rate is not None:
        found["plain's best rate"] = at(rate["lr"], decay)
    if both is not None:
        found["plain's best rate and decay"] = at(both["lr"], both["weight_decay"])
    found["each at its own best"] = lambda t: t
    return found


def gains(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per condition, point and recipe: what it gives over plain; T (and at its best lr, decay) by validation.

    A recipe is chosen over the seeds that all of its cells have, plain among its cells with most seeds (two runs more were given to
    the rates around its best); the two chosen are compared over all seeds that both have.
    """
    rows = []
    for key, group in runs.groupby(CONDITION, dropna=False):
        facts = dict(zip(CONDITION, key, strict=True))
        for recipe, own in group[group["recipe"] != PLAIN].groupby("recipe", sort=False):
            table = cells(own)
            seeds = [
                s
                for s in sorted(own["seed"].unique())
                if len(cells(own[own["seed"] == s])) == len(table)
            ]
            mine = cells(own[own["seed"].isin(seeds)])
            plain = cells(group[group["recipe"] == PLAIN])
            if mine.empty or plain.empty:
                continue
            for point, take in points(plain, str(facts["optimizer"])).items():
                base, chosen = best(take(plain)), best(take(mine))
                if base is None or chosen is None:
                    continue
                one = take(mine)[take(mine)["temperature"] == 1]
                both, shared = means(group, base, chosen)
                rows.append(
                    {
                        **facts,
                        "point": point,
                        "recipe": recipe,
                        "plain": both["test"][0],
                        "plain_lr": base["lr"],
                        "plain_decay": base["weight_decay"],
                        "plain_train": base["train"],
                        "test": both["test"][1],
                        "T": chosen["temperature"],
                        "lr": chosen["lr"],
                        "decay": chosen["weight_decay"],
                        "gain": both["test"][1] - both["test"][0],
                        "gain_T1": one["test"].max() - base["test"] if len(one) == 1 else math.nan,
                        "gain_nll": both["nll"][0] - both["nll"][1],
                        "gain_ece": both["ece"][0] - both["ece"][1],
                        "tried": len(take(mine)),
                        "plain_tried": len(take(plain)),
                        "seeds": shared,
                    }
                )
    return pd.DataFrame(rows)


def means(group: pd.DataFrame, *chosen: pd.Series) -> tuple[dict[str, list[float]], int]:
    """Test accuracy, NLL and ECE of the chosen cells, each the mean over the seeds that all have, and how many these are."""
    runs = []
    for cell in chosen:
        same = group["recipe"] == cell["recipe"]
        for name in ("lr", "weight_decay", "temperature"):
            same &= np.isclose(group[name], cell[name])
        runs.append(group[same].set_index("seed"))
    seeds = sorted(set.intersection(*(set(part.index) for part in runs)))
    columns = {"test": "test_accuracy", "nll": "nll", "ece": "ece"}
    values = {
        name: [float(part.loc[seeds, column].mean()) for part in runs]
        for name, column in columns.items()
    }
    return values, len(seeds)


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Means over conditions with their 95 % intervals (t, one condition one vote)."""
    rows = []
    for (part, point, recipe), group in found.groupby(["part", "point", "recipe"], sort=False):
        low, high = interval(group["gain"])
        rows.append(
            {
                "part": part,
                "point": point,
                "recipe": recipe,
                "conditions": len(group),
                "gain": group["gain"].mean(),
                "low": low,
                "high": high,
                "worst": group["gain"].min(),
                "best": group["gain"].max(),
                "gain_nll": group["gain_nll"].mean(),
                "gain_ece": 100 * group["gain_ece"].mean(),
                "median_T": group["T"].median(),
            }
        )
    return pd.DataFrame(rows)


def interval(values: pd.Series) -> tuple[float, float]:
    """95 %, Student's t over conditions."""
    from scipy.stats import t

    n = len(values)
    if n < 2:
        return math.nan, math.nan
    half = t.ppf(0.975, n - 1) * values.std(ddof=1) / math.sqrt(n)
    return values.mean() - half, values.mean() + half


def sensitivity(runs: pd.DataFrame) -> pd.DataFrame:
    """What a rate that is off by half a decade and by a decade costs, at the usual decay: points below the recipe's best."""
    rows = []
    for key, group in runs.groupby(CONDITION, dropna=False):
        facts = dict(zip(CONDITION, key, strict=True))
        usual = group[np.isclose(group["weight_decay"], USUAL[str(facts["optimizer"])][1])]
        for (recipe, T), own in usual.groupby(["recipe", "temperature"]):
            mine = cells(own[own["seed"].isin(common_seeds(own))])
            top = None if mine.empty else best(mine)
            if top is None or mine["lr"].nunique() < 3:
                continue
            for off in (1 / math.sqrt(10), math.sqrt(10), 0.1, 10):
                there = mine[np.isclose(np.log10(mine["lr"]), np.log10(top["lr"] * off), atol=0.05)]
                if len(there) == 1:
                    loss = top["test"] - there["test"].iloc[0]
                    rows.append(
                        {**facts, "recipe": recipe, "T": T, "off": round(off, 2), "loss": loss}
                    )
    return pd.DataFrame(rows)


def common_seeds(runs: pd.DataFrame) -> list[int]:
    """The seeds that every cell of these runs has."""
    count = len(cells(runs))
    return [
        s for s in sorted(runs["seed"].unique()) if len(cells(runs[runs["seed"] == s])) == count
    ]


def best_temperature(runs: pd.DataFrame) -> pd.DataFrame:
    """Where in T each recipe is best at each rate and decay, and what the hottest T gives."""
    rows = []
    for key, group in runs[runs["recipe"] != PLAIN].groupby(CONDITION, dropna=False):
        facts = dict(zip(CONDITION, key, strict=True))
        for (recipe, lr, decay), own in group.groupby(["recipe", "lr", "weight_decay"]):
            grid = cells(own[own["seed"].isin(common_seeds(own))])
            if len(grid) < 3:
                continue
            top, hottest = best(grid), grid.loc[grid["temperature"].idxmax()]
            assert top is not None
            rows.append({**facts, "recipe": recipe, "lr": lr, "decay": decay, "T": top["temperature"],
                         "test": top["test"], "hottest": hottest["temperature"], "at_hottest": hottest["test"]})  # fmt: skip
    return pd.DataFrame(rows)


def walk(runs: pd.DataFrame) -> pd.DataFrame:
    """How far each T lies below the best T at the same rate and decay, and the head's walk lr·steps·M/(T²·K) there."""
    rows = []
    tempered = runs[runs["recipe"].isin(WALKS)]
    by = [*CONDITION, "num_classes", "recipe", "lr", "weight_decay"]
    for key, own in tempered.groupby(by, dropna=False):
        facts = dict(zip(by, key, strict=True))
        grid = cells(own[own["seed"].isin(common_seeds(own))])
        if len(grid) < 3:
            continue
        for _, cell in grid.iterrows():
            T, spent = cell["temperature"], facts["lr"] * facts["steps"]
            far = spent * facts["num_features"] / (T**2 * facts["num_classes"])
            rows.append({**facts, "T": T, "walk": far, "lost": grid["test"].max() - cell["test"]})
    return pd.DataFrame(rows)


def main() -> None:
    runs = load()
    table = cells(runs)
    found = gains(runs)
    for name, content in {
        "cells": table,
        "gains": found,
        "summary": summary(found),
        "sensitivity": sensitivity(runs),
        "best_temperature": best_temperature(runs),
        "walk": walk(runs),
    }.items():
        content.round(4).to_csv(FOLDER / f"{name}.csv", index=False)
    facts = {"runs": len(runs), "noise": noise(runs), "hours": runs["seconds"].sum() / 3600}
    pd.Series(facts).round(3).to_csv(FOLDER / "facts.csv", header=False)
    print(facts)
    with pd.option_context("display.width", 200, "display.max_rows", 200):
        print(summary(found).round(2).to_string())


if __name__ == "__main__":
    main()
