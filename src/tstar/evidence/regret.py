"""Regret: how many points of accuracy a rule loses against the best temperature of the grid.

The oracle picks its T by validation accuracy and costs the whole grid; every score is test accuracy.
So the regret of a rule can be negative where the oracle was misled by noise, as any choice can be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tstar.errors import TstarError, require
from tstar.evidence.cases import Array, Case, clusters
from tstar.formula.rules import rule

if TYPE_CHECKING:
    import pandas as pd

Rule = Callable[[Mapping[str, Any]], float]
TIE = 0.01  # accuracies that differ by at most a point are a tie
_RESAMPLES = 2000


def _named(name: str) -> Rule:
    def temperature(facts: Mapping[str, Any]) -> float:
        M, K = int(facts["num_features"]), int(facts["num_classes"])
        csg = facts.get("csg")
        try:
            return rule(name, M, K, csg or None)
        except TstarError:
            # No csg, or one of 0: what recommend() does then.
            if name in ("ours-csg", "ours-csgcn"):
                return rule("ours-cn", M, K)
            raise

    return temperature


# The closed forms that need nothing but M, K and csg.
RULES: dict[str, Rule] = {
    name: _named(name)
    for name in (
        *("default", "sqrt-m", "heated-up", "adacos-fixed", "normface-bound"),
        *("ours-base", "ours-csg", "ours-cn", "ours-csgcn"),
    )
}


def scores(found: Sequence[Case], rules: Mapping[str, Rule] = RULES) -> pd.DataFrame:
    """One row a condition and rule: its T, test accuracy there, at T = 1 and at the oracle's T.

    ``regret`` = oracle − rule and ``gain`` = rule − (T = 1), in points (hundredths of accuracy).
    """
    pandas = require("pandas", "fit")
    rows = []
    for number, case in enumerate(found):
        one, oracle = case.at(1.0), case.at(case.best)
        for name, temperature in rules.items():
            T = float(temperature(case.facts))
            here = case.at(T)
            rows.append(
                {
                    "condition": number,
                    **{key: case.facts.get(key) for key in _SHOWN},
                    "seeds": case.seeds,
                    "rule": name,
                    "temperature": T,
                    "best_temperature": case.best,
                    "accuracy": here,
                    "accuracy_1": one,
                    "accuracy_best": oracle,
                    "regret": 100 * (oracle - here),
                    "gain": 100 * (here - one),
                }
            )
    return pandas.DataFrame(rows)


_SHOWN = (
    *("dataset", "domain", "model", "num_features", "num_classes", "csg", "norm", "optimizer"),
    *("lr", "steps", "scenario"),
)


def compare(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """One row a rule: mean regret, the share of the oracle's gain over T = 1, wins, ties, losses.

    Intervals are 95 % bootstrap percentiles over data sets, then over the conditions of each: data
    sets are what a new user brings. ``worst`` is the largest loss against T = 1 in points.
    """
    pandas = require("pandas", "fit")
    rng = np.random.default_rng(seed)
    weights = _resamples(table.drop_duplicates("condition"), rng)
    wanted = sorted(set(table["condition"]))
    edge = 100 * TIE + 1e-9  # a difference of exactly a point is a tie, whatever its rounding
    rows = []
    for name in dict.fromkeys(table["rule"]):
        mine = table[table["rule"] == name].sort_values("condition")
        if [*mine["condition"]] != wanted:
            raise TstarError(
                f"Every rule must have each of the {len(wanted)} conditions once, but {name!r} has {len(mine)} rows."
            )
        regret, gain = (mine[column].to_numpy(dtype=float) for column in ("regret", "gain"))
        possible = regret + gain  # the oracle's gain over T = 1
        low, high = np.quantile(_means(weights, regret), [0.025, 0.975])
        shares = _shares(_means(weights, gain), _means(weights, possible))
        rows.append(
            {
                "rule": name,
                "conditions": len(mine),
                "regret": regret.mean(),
                "regret_low": low,
                "regret_high": high,
                "captured": float(
                    _shares(gain.mean(keepdims=True), possible.mean(keepdims=True))[0]
                ),
                "captured_low": np.nanquantile(shares, 0.025),
                "captured_high": np.nanquantile(shares, 0.975),
                "wins": int((gain > edge).sum()),
                "ties": int((np.abs(gain) <= edge).sum()),
                "losses": int((gain < -edge).sum()),
                "worst": max(0.0, -gain.min()),
            }
        )
    return pandas.DataFrame(rows)


def noise(found: Sequence[Case]) -> tuple[float, int]:
    """The regret that noise alone gives, in points, and the number of conditions it comes from.

    The oracle of one half of the seeds, chosen on their validation accuracy, is scored on the other
    half's test accuracy against that half's own oracle; both ways, where there are two seeds or more.
    """
    lost = []
    for case in found:
        if case.seeds < 2:
            continue
        half = case.seeds // 2
        first, second = case.only([*range(half)]), case.only([*range(half, case.seeds)])
        for a, b in ((first, second), (second, first)):
            lost.append(100 * (b.at(b.best) - b.at(a.best)))
    return (float(np.mean(lost)) if lost else float("nan")), len(lost) // 2


def _resamples(conditions: pd.DataFrame, rng: np.random.Generator) -> Array:
    """(resamples, conditions) how often each condition counts, data sets drawn first."""
    sets = clusters([*conditions.sort_values("condition")["dataset"].astype(str)])
    weights = np.zeros((_RESAMPLES, len(conditions)))
    for row in weights:
        for place in rng.integers(len(sets), size=len(sets)):
            members = sets[place]
            np.add.at(row, rng.choice(members, size=len(members)), 1.0)
    return weights


def _shares(gain: Array, possible: Array) -> Array:
    """gain / possible; NaN where nothing can be gained over T = 1."""
    shares: Array = np.divide(gain, possible, out=np.full_like(gain, np.nan), where=possible > 0)
    return shares


def _means(weights: Array, values: Array) -> Array:
    means: Array = weights @ values / weights.sum(axis=1)
    return means
