"""Regret: how many points of accuracy a rule loses against the best temperature of the grid.

The oracle picks its T by validation accuracy and costs the whole grid; every score is test accuracy.
So the regret of a rule can be negative where the oracle was misled by noise, as any choice can be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError, unknown
from tstar.imports import require
from tstar.lab.curves import Condition, Curve, conditions, judge
from tstar.lab.curves.resampling import weighted, weights
from tstar.lab.methods.rules import rule

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Rule = Callable[[Mapping[str, Any]], float]
TIE = 0.01  # accuracies that differ by at most a point are a tie
LEAST_TEMPERATURES = 5


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


def cases(runs: pd.DataFrame, norm: str = "batch") -> list[Condition]:
    """The conditions that have a grid of temperatures under this norm, some seed having all of it."""

    def has_grid(curve: Curve | None) -> bool:
        enough = curve is not None and len(curve.temperatures) >= LEAST_TEMPERATURES
        return enough and bool(curve.ran.all(axis=1).any())  # type: ignore[union-attr]

    return [condition for condition in conditions(runs) if has_grid(condition.curve(norm))]


def scores(
    found: Sequence[Condition],
    rules: Mapping[str, Rule] = RULES,
    *,
    norm: str = "batch",
    backbone: str = "as-is",
) -> pd.DataFrame:
    """One row per condition and rule: its T, test accuracy there, and :class:`tstar.lab.curves.Judged`'s
    ``regret``, ``gain`` (over plain, NaN where plain was not run) and ``gain_bn`` (over BN, T = 1), in points.
    """
    pandas = require("pandas", "lab")
    rows = []
    for number, condition in enumerate(found):
        for name, temperature in rules.items():
            judged = judge(
                condition, float(temperature(condition.facts)), norm=norm, backbone=backbone
            )
            if judged is None:
                raise TstarError(f"A condition has no runs with norm={norm!r}: {condition.facts}.")
            shown = {key: condition.facts.get(key) for key in _SHOWN}
            rows.append({"condition": number, **shown, "rule": name, **vars(judged)})
    return pandas.DataFrame(rows).astype({"gain": float, "gain_bn": float})


_SHOWN = (
    *("dataset", "domain", "model", "num_features", "num_classes", "csg", "optimizer", "lr"),
    *("weight_decay", "steps", "scenario"),
)


def compare(table: pd.DataFrame, over: str = "gain_bn", seed: int = 0) -> pd.DataFrame:
    """One row per rule: mean regret, the share of the oracle's gain over a baseline, wins, ties, losses.

    ``over`` is ``"gain"`` (over plain) or ``"gain_bn"`` (over BN, T = 1); conditions without that baseline are
    left out for every rule alike. Intervals are 95 % bootstrap percentiles over data sets, then over the
    conditions of each: data sets are what a new user brings. ``worst`` is the largest loss in points.
    """
    if over not in ("gain", "gain_bn"):
        raise unknown("baseline", over, ("gain", "gain_bn"))
    table = table[table[over].notna()]
    if table.empty:
        raise TstarError(
            "No condition has a run of this baseline, so that nothing can be compared."
        )
    pandas = require("pandas", "lab")
    rng = np.random.default_rng(seed)
    wanted = sorted(set(table["condition"]))
    places = table.drop_duplicates("condition").sort_values("condition")["dataset"]
    counts = weights([*places.astype(str)], rng)
    edge = 100 * TIE + 1e-9  # a difference of exactly a point is a tie, whatever its rounding
    rows = []
    for name in dict.fromkeys(table["rule"]):
        mine = table[table["rule"] == name].sort_values("condition")
        if [*mine["condition"]] != wanted:
            raise TstarError(
                f"Every rule must have each of the {len(wanted)} conditions once, but {name!r} has {len(mine)} rows."
            )
        regret, gain = (mine[column].to_numpy(dtype=float) for column in ("regret", over))
        possible = regret + gain  # the oracle's gain over the baseline
        low, high = np.quantile(weighted(counts, regret), [0.025, 0.975])
        shares = _shares(weighted(counts, gain), weighted(counts, possible))
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


def noise(found: Sequence[Curve]) -> tuple[float, int]:
    """The regret that noise alone gives, in points, and the number of conditions it comes from.

    The oracle of one half of the seeds, chosen on their validation accuracy, is scored on the other
    half's test accuracy against that half's own oracle; both ways, where there are two seeds or more.
    """
    lost = []
    for curve in (whole.matched() for whole in found):
        half = len(curve.seeds) // 2
        if not half:
            continue
        first, second = curve.only(curve.seeds[:half]), curve.only(curve.seeds[half:])
        for a, b in ((first, second), (second, first)):
            lost.append(100 * (b.at(b.best) - b.at(a.best)))
    return (float(np.mean(lost)) if lost else float("nan")), len(lost) // 2


def _shares(gain: Array, possible: Array) -> Array:
    """gain / possible; NaN where nothing can be gained."""
    shares: Array = np.divide(gain, possible, out=np.full_like(gain, np.nan), where=possible > 0)
    return shares
