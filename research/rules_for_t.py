"""Rules for T compared: BN at the user's rate with the nearest T that was run, in points over the plain model."""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd

from research import clustered
from research.user_gains import MOST
from tstar.lab.methods.rules import rule

# The mean rate over the highest.
SCHEDULES = {"constant": 1.0, "cosine": 0.5, "linear": 0.5, "one-cycle": 0.506}

Row = Any  # one row of user_gains.table


def temperatures(row: Row) -> dict[str, float]:
    M, K = int(row["M"]), int(row["K"])
    paper = {f"paper, {n}": rule(f"ours-{n}", M, K) for n in ("base", "cn")}
    spent = row["lr"] * row["steps"] * SCHEDULES[row["schedule"]] / 0.5
    if row["optimizer"] == "sgd":
        limit = 0.28 * math.sqrt(spent * 0.1 / (1 - row["momentum"]) * M / K)
    else:
        limit = 0.026 * spent * M
    factor = row["backbone_factor"]
    return {
        "T = 1": 1.0,
        "T = 2": 2.0,
        "the law": row["middle"],
        "the law of 0.1": max(min(paper["paper, cn"], limit), 0.25),
        "the backbone's own speed": 1 / factor if factor == factor else 1.0,
        **paper,
        "sqrt(M)": math.sqrt(M),
    }


def nearest_run(row: Row, T: float) -> float:
    """Accuracy at the nearest T that was run. Interpolation would favor the law, whose T was run in every condition."""
    curve = json.loads(row["curve"])
    return float(curve[min(curve, key=lambda t: abs(math.log(float(t) / T)))])


def laws(rows: pd.DataFrame) -> pd.DataFrame:
    """Rules for T, by the points that they give over plain (seed 0), for SGD and Adam apart."""
    made = []
    for optimizer, part in [("both", rows), *rows.groupby("optimizer")]:
        found = [
            {name: nearest_run(row, T) - row["plain"] for name, T in temperatures(row).items()}
            for _, row in part.iterrows()
        ]
        for name, gains in pd.DataFrame(found, index=part.index).clip(-MOST, MOST).items():
            mean, low, high = clustered.interval(gains, part["dataset"], part["network"])
            made.append({"optimizer": optimizer, "rule": name, "conditions": len(gains), "gain": mean,
                         "low": low, "high": high})  # fmt: skip
    return pd.DataFrame(made)
