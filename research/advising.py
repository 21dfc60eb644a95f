"""Which advice would have been worth following on the second atlas: candidates, judged with parts of it left out.

    python -m research.advising            # → results/atlas2/advice*.csv

A candidate reads the facts of a condition and names a recipe: *leave* the model alone, *BN* with some T at the user's rate, or *BN* at
three times the rate. Its gain is in points over the default plain model, same seed; where T lies between two temperatures that were
run, accuracy is interpolated in ln T. Everything that is fitted, is fitted without the condition's data set, without its family of
networks, or without its third of the batch sizes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tstar.formula.rules import rule

C = 0.61  # of the head law, fitted on the first atlas
BUDGET = {"sgd": 0.28, "adam": 0.026}  # of version 0.1's law

Row = Any  # one row of user_gains.table
LEAVE = "leave"


@dataclass(frozen=True)
class Advice:
    """``recipe``: leave, bn, matched, no_norm or faster; T where it has one."""

    recipe: str
    T: float = 1.0


Rule = Callable[[Row], Advice]
Fit = Callable[[pd.DataFrame], Rule]


def accuracy(row: Row, advice: Advice) -> float:
    """Test accuracy of what is advised, seed 0; NaN where it was not run."""
    if advice.recipe == LEAVE:
        return float(row["plain"])
    if advice.recipe == "bn":
        curve = json.loads(row["curve"])
        logs = [math.log(float(T)) for T in curve]
        return float(np.interp(math.log(advice.T), logs, list(curve.values())))
    column = {"faster": "faster_bn", "fastest": "fastest_bn"}.get(advice.recipe, advice.recipe)
    value = row[column]
    return math.nan if value is None else float(value)


def gain(row: Row, advice: Advice) -> float:
    return accuracy(row, advice) - float(row["plain"])


# -- temperatures of BN at the user's rate --------------------------------------------------------


def head_law(row: Row, c: float, power: float = 0.25) -> float:
    """c·sqrt(lr·M)·(steps/(K·B·(1 − μ)))^power for SGD; Adam's plateau is wide: 2."""
    if row["optimizer"] != "sgd":
        return 2.0
    budget = row["steps"] / (row["K"] * row["batch"] * (1 - row["momentum"]))
    return float(np.clip(c * math.sqrt(row["lr"] * row["M"]) * budget**power, 0.5, 64.0))


def same_speed(row: Row) -> float:
    """The T at which the backbone learns as fast as in the plain model: 1/σ, measured on one batch."""
    factor = row["backbone_factor"]
    return 1.0 if factor is None or factor != factor else float(np.clip(1 / factor, 0.25, 64.0))


def budget_law(row: Row) -> float:
    """The law of version 0.1: min(T* of cn, 0.28·sqrt(lr·steps·M/K)) for SGD, min(T*, 0.026·lr·steps·M) for Adam."""
    spent = row["lr"] * row["steps"] * (2.0 if row["schedule"] == "constant" else 1.0)
    M, K = row["M"], row["K"]
    if row["optimizer"] == "sgd":
        limit = BUDGET["sgd"] * math.sqrt(spent * 0.1 / (1 - row["momentum"]) * M / K)
    else:
        limit = BUDGET["adam"] * spent * M
    return max(min(paper(row), limit), 0.25)


def paper(row: Row, name: str = "ours-cn") -> float:
    return rule(name, int(row["M"]), int(row["K"]))


TEMPERATURES: dict[str, Callable[[Row], float]] = {
    "T = 1": lambda row: 1.0,
    "T = 2": lambda row: 2.0,
    "head law": lambda row: head_law(row, C),
    "same speed": same_speed,
    "min(head law, cn)": lambda row: min(head_law(row, C), max(1.0, paper(row))),
    "law of 0.1": budget_law,
    "paper, cn": paper,
    "paper, base": lambda row: paper(row, "ours-base"),
    "sqrt(M)": lambda row: math.sqrt(row["M"]),
}


# -- who gets what ------------------------------------------------------------------------------------


def everyone(recipe: str, T: Callable[[Row], float] = lambda row: 1.0) -> Fit:
    """The same recipe for every condition."""
    return lambda train: lambda row: Advice(recipe, T(row))


def by_group(
    groups: Callable[[Row], Any], recipes: Sequence[tuple[str, Callable[[Row], float]]], errors: float = 1.0
) -> Fit:  # fmt: skip
    """In each group the recipe with the best mean gain on the training part, if it is above zero by so many standard errors."""

    def fit(train: pd.DataFrame) -> Rule:
        chosen: dict[Any, tuple[str, Callable[[Row], float]]] = {}
        keys = [groups(row) for _, row in train.iterrows()]
        for key in set(keys):
            part = [row for k, (_, row) in zip(keys, train.iterrows(), strict=True) if k == key]
            best = 0.0
            for recipe, T in recipes:
                gains = np.array([gain(row, Advice(recipe, T(row))) for row in part])
                gains = gains[np.isfinite(gains)]
                if len(gains) < 4:
                    continue
                sure = winsorized(gains) - errors * gains.std(ddof=1) / math.sqrt(len(gains))
                if sure > best:
                    best, chosen[key] = sure, (recipe, T)

        def advise(row: Row) -> Advice:
            found = chosen.get(groups(row))
            return Advice(LEAVE) if found is None else Advice(found[0], found[1](row))

        return advise

    return fit


def winsorized(values: np.ndarray, most: float = 10.0) -> float:
    """The mean with every value held within ±10 points: one rescued training must not speak for a group."""
    return float(np.clip(values, -most, most).mean())


def left_out(table: pd.DataFrame, fit: Fit, by: str) -> list[Advice]:
    """The advice for each condition, fitted without the conditions that share its value of ``by``."""
    advised: list[Advice] = [Advice(LEAVE)] * len(table)
    for value in table[by].unique():
        mine = (table[by] == value).to_numpy()
        rule_ = fit(table[~mine])
        for i in np.flatnonzero(mine):
            advised[i] = rule_(table.iloc[i])
    return advised


def batch_third(table: pd.DataFrame) -> pd.Series:
    low, high = table["batch"].quantile([1 / 3, 2 / 3])
    return pd.cut(table["batch"], [0, low, high, np.inf], labels=["low", "middle", "high"]).astype(str)  # fmt: skip


def scored(table: pd.DataFrame, advised: Sequence[Advice]) -> pd.DataFrame:
    """The table with the recipe, T and gains of an advice beside it."""
    rows = [row for _, row in table.iterrows()]
    found = [gain(row, advice) for row, advice in zip(rows, advised, strict=True)]
    return table.assign(
        recipe=[a.recipe for a in advised],
        T=[a.T for a in advised],
        gain=found,
        gain_tuned=[g + row["plain"] - row["tuned"] for g, row in zip(found, rows, strict=True)],
    )
