"""Which advice would have been worth following on the second atlas: candidates, judged with parts of it left out.

    python -m research.advising    # → results/atlas2/advice.csv, shipped.csv, laws.csv, coverage.csv; src/tstar/formula/conditions.json

A recipe is *leave* (the model as it is), *rate* (the model as it is at three times the rate), *bn* (BN and the law's T at the user's rate), *faster* and *fastest* (BN and the law's T at
three and ten times the rate). Its gain is in points over the default plain model, the mean over the same seeds on both sides. Every
choice is made without the condition's data set, without its family of networks, or without its third of the batch sizes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from research import clustered, long_runs
from research.conditions import nice
from research.rules_for_t import laws
from research.user_gains import FOLDER, MOST, groups, load, noise, paired, table
from tstar.formula import similar
from tstar.formula.training import SCHEDULES, Training

Row = Any  # one row of user_gains.table
LEAVE = "leave"
TOLD = "tuned, told"  # over a tuned model whose user says so: the advice keeps its rate and decay
COLUMNS = {"rate": "plain_faster", "bn": "bn", "faster": "faster_bn", "fastest": "fastest_bn"}
SHIPPED = Path(similar.__file__).with_name(similar.FILE)
# How a pretrained network normalizes: fine-tunings of others are no evidence for it.
INSIDE = {"mobilenet": "batch-norms", "minilm": "layer-norms", "minilm_lora": "layer-norms"}
FEWEST = 6  # conditions of a group, below which nothing is advised


def with_gains(rows: pd.DataFrame) -> pd.DataFrame:
    """The table with the gain of every recipe beside it, over the seeds that both sides have."""
    rows = rows.reset_index(drop=True).copy()
    for recipe, column in COLUMNS.items():
        rows[f"gain_{recipe}"] = paired(rows, column, "plain")[0]
        rows[f"over_tuned_{recipe}"] = paired(rows, column, "tuned")[0]
        rows[f"first_{recipe}"] = rows[column].astype(float) - rows["plain"]  # the first seed alone
    rows["gain_tuned"] = paired(rows, "tuned", "plain")[0]
    rows["gain_searched"] = rows["searched"] - rows["plain"]
    rows["gain_leave"], rows["over_tuned_leave"], rows["first_leave"] = (
        0.0,
        -rows["gain_tuned"],
        0.0,
    )
    low, high = rows["batch"].quantile([1 / 3, 2 / 3])
    rows["batches"] = np.select([rows["batch"] <= low, rows["batch"] <= high], ["low", "middle"], "high")  # fmt: skip
    return rows


def at_tuned(rows: pd.DataFrame) -> pd.DataFrame:
    """The same conditions for a user who has tuned: tuned plain is their own model, and rate and decay are its."""
    own = ["plain", "plain_1", "bn1", "bn1_1", "bn", "bn_1"]
    theirs = {name: rows[name.replace("plain", "tuned").replace("bn", "tuned_bn")] for name in own}
    lr = (rows["lr"] * rows["tuned_lr"]).map(nice)
    made = rows.assign(**theirs, lr=lr, decay=rows["tuned_decay"], searched=math.nan)
    made = made[made["bn"].notna()].reset_index(drop=True)
    others = [f"{column}{seed}" for name, column in COLUMNS.items() if name != "bn" for seed in ("", "_1")]  # fmt: skip
    return with_gains(made.assign(**dict.fromkeys(others, math.nan)))


# -- who gets what -------------------------------------------------------------------------------------

Fit = Callable[[pd.DataFrame], Callable[[Row], str]]


def everyone(recipe: str) -> Fit:
    return lambda train: lambda row: recipe


def by_group(names: Sequence[str], recipes: Sequence[str], errors: float = 1.0) -> Fit:
    """In each group the recipe with the best mean gain, less so many standard errors; *leave* where none is above zero."""

    def fit(train: pd.DataFrame) -> Callable[[Row], str]:
        chosen = {
            key: best_of(part, recipes, errors)[0] for key, part in train.groupby(list(names))
        }
        return lambda row: chosen.get(tuple(row[name] for name in names), LEAVE)

    return fit


def by_neighbors(names: Sequence[str], recipes: Sequence[str]) -> Fit:
    """As ``by_group``, but *leave* where the most similar trainings are far off or did not gain: what ships."""

    def fit(train: pd.DataFrame) -> Callable[[Row], str]:
        grouped = by_group(names, recipes)(train)
        known = neighbors(train)

        def advise(row: Row) -> str:
            recipe, mine = grouped(row), entry(row)
            if recipe == LEAVE:
                return LEAVE
            found = similar.among(known, mine["coordinates"], mine["optimizer"], mine["norms"], recipe)  # fmt: skip
            return recipe if found.supports else LEAVE

        return advise

    return fit


def best_of(
    part: pd.DataFrame, recipes: Sequence[str], errors: float, fewest: int = FEWEST
) -> tuple[str, float, float, int]:
    """Recipe, mean gain, its standard error and the number of conditions."""
    best, sure = (LEAVE, 0.0, 0.0, len(part)), 0.0
    for recipe in recipes:
        gains = part[f"gain_{recipe}"].dropna().clip(-MOST, MOST)
        if len(gains) < fewest:
            continue
        error = float(gains.std(ddof=1) / math.sqrt(len(gains)))
        if gains.mean() - errors * error > sure:
            sure = gains.mean() - errors * error
            best = (recipe, float(gains.mean()), error, len(gains))
    return best


def left_out(rows: pd.DataFrame, fit: Fit, by: str) -> pd.Series:
    """The recipe for each condition, chosen without those that share its value of ``by``."""
    advised = pd.Series(LEAVE, index=rows.index)
    for value in rows[by].unique():
        mine = rows[by] == value
        advise = fit(rows[~mine])
        advised[mine] = [advise(row) for _, row in rows[mine].iterrows()]
    return advised


GROUPS = ("norms", "optimizer")
ADVISED = ("bn", "faster")
SHIPS = "by optimizer, left where similar trainings did not gain"
CANDIDATES: dict[str, Fit] = {
    "leave it": everyone(LEAVE),
    "rate × 3.2 for all": everyone("rate"),
    "BN, T for all": everyone("bn"),
    "BN, T, rate × 3 for all": everyone("faster"),
    "BN, T, rate × 10 for all": everyone("fastest"),
    SHIPS: by_neighbors(("optimizer",), ADVISED),
    "by optimizer": by_group(("optimizer",), ADVISED),
    "by optimizer, the rate alone too": by_group(("optimizer",), ("rate", *ADVISED)),
    "by optimizer, rate × 10 too": by_group(("optimizer",), list(COLUMNS)),
    "by norms and optimizer, at the user's rate": by_group(GROUPS, ["bn"]),
    "by norms and optimizer": by_group(GROUPS, ADVISED),
    "by norms and optimizer, two errors": by_group(GROUPS, ADVISED, 2.0),
}
TUNED: dict[str, Fit] = {  # where the user's rate and decay are tuned
    "leave it": everyone(LEAVE),
    "BN, T for all": everyone("bn"),
    SHIPS: by_neighbors(("optimizer",), ["bn"]),
    "by optimizer": by_group(("optimizer",), ["bn"]),
    "by norms and optimizer": by_group(GROUPS, ["bn"]),
}
LEFT_OUT = {"data set": "dataset", "architecture": "network", "batch sizes": "batches"}


def picked(rows: pd.DataFrame, advised: pd.Series, what: str = "gain") -> pd.Series:
    """What the advised recipe gave in each condition: over plain (``"gain"``; ``"first"``: of the first seed), or over tuned plain."""
    return pd.Series(
        [rows.at[i, f"{what}_{recipe}"] for i, recipe in advised.items()], advised.index
    )


def judged(rows: pd.DataFrame, advised: pd.Series) -> dict[str, float]:
    """What an advice is worth over the user's own model, and beside a search."""
    beyond = 2 * noise(rows) / math.sqrt(2)
    gains = picked(rows, advised).fillna(0.0)
    held, over = gains.clip(-MOST, MOST), picked(rows, advised, "over_tuned").clip(-MOST, MOST)
    mean, low, high = clustered.interval(held, rows["dataset"], rows["network"])
    families = held.groupby(rows["network"]).mean()
    # The search has one seed, so that its share is taken on that.
    searched = rows["gain_searched"].clip(-MOST, MOST).mean()
    first = picked(rows, advised, "first").fillna(0.0).clip(-MOST, MOST).mean()
    lost = gains < -1 - beyond
    return {
        "gain": mean, "low": low, "high": high, "over_tuned": over.mean(), "families": families.mean(),
        "worst_family": families.min(), "helped": (gains > beyond).mean(), "harmed": (gains < -beyond).mean(),
        "worst": gains.min(), "lost": int(lost.sum()), "left": (advised == LEAVE).mean(),
        "of_search": first / searched if searched > 0 else math.nan,
    }  # fmt: skip


def candidates(rows: pd.DataFrame) -> pd.DataFrame:
    """Every candidate, for users at the usual rate and for those who have tuned."""
    made = []
    for user, some, advices in (("usual", rows, CANDIDATES), ("tuned", at_tuned(rows), TUNED)):
        for name, fit in advices.items():
            for scheme, by in LEFT_OUT.items():
                found = judged(some, left_out(some, fit, by))
                made.append({"user": user, "advice": name, "left out": scheme, **found})
    return pd.DataFrame(made)


def shipped_gains(rows: pd.DataFrame) -> pd.DataFrame:
    """What ships, chosen without the condition's network, in the parts of the atlas.

    Over plain; over tuned plain; and over tuned plain where the user says so, and its rate and decay are kept.
    """
    by, theirs = LEFT_OUT["architecture"], at_tuned(rows)
    usual, told = left_out(rows, CANDIDATES[SHIPS], by), left_out(theirs, TUNED[SHIPS], by)
    made = []
    for baseline, table_of, advised, column in (
        ("plain", rows, usual, "gain"), ("tuned", rows, usual, "over_tuned"), (TOLD, theirs, told, "gain"),
    ):  # fmt: skip
        for part, mask in groups(table_of).items():
            some = table_of[mask]
            if some.empty:
                continue
            gains = picked(table_of, advised[some.index], column).fillna(0.0).clip(-MOST, MOST)
            mean, low, high = clustered.interval(gains, some["dataset"], some["network"])
            left = float((advised[some.index] == LEAVE).mean())
            made.append({"part": part, "over": baseline, "conditions": len(some), "gain": mean, "low": low, "high": high,
                         "left": left})  # fmt: skip
    return pd.DataFrame(made)


# -- what ships ------------------------------------------------------------------------------------------


def training(row: Row) -> Training:
    sgd = row["optimizer"] == "sgd"
    return Training(
        row["optimizer"], float(row["lr"]), int(row["steps"]), float(row["momentum"]) if sgd else None,
        rate_factor=SCHEDULES[row["schedule"]], batch_size=int(row["batch"]),
    )  # fmt: skip


def entry(row: Row) -> dict[str, Any]:
    mine = similar.coordinates(training(row), row["M"], row["K"], row["samples"])
    gains = {recipe: row[f"gain_{recipe}"] for recipe in ADVISED}
    inside = {"inside": INSIDE[row["family"]]} if row["family"] in INSIDE else {}
    return {
        "condition": int(row["condition"]), "family": row["family"], "network": row["network"], "dataset": row["dataset"],
        "norms": row["norms"], **inside, "optimizer": {"sgd": "sgd"}.get(row["optimizer"], "adam"),
        "M": int(row["M"]), "K": int(row["K"]), "batch": int(row["batch"]), "steps": int(row["steps"]), "lr": row["lr"],
        "plain": round(row["plain"], 2),
        "coordinates": {name: round(value, 4) for name, value in mine.items()},
        "gains": {name: round(value, 2) for name, value in gains.items() if value == value},
        "keys": json.loads(row["keys"]),
    }  # fmt: skip


def shipped(rows: pd.DataFrame, tuned: pd.DataFrame, beside: pd.DataFrame) -> dict[str, Any]:
    """Everything that the advice reads, from the whole atlas: from scratch and fine-tuned, at the usual and at tuned rates.

    ``beside`` are trainings from scratch that were not drawn: neighbors as the others, but no recipe is chosen on them.
    """
    usual, told = (rows, tuned), (at_tuned(rows), at_tuned(tuned))
    choices = [*chosen(*usual, ADVISED, False), *chosen(*told, ["bn"], True)]
    return {**known_of(*usual, beside), "choices": choices, "tuned": known_of(*told, at_tuned(beside))}  # fmt: skip


def known_of(rows: pd.DataFrame, tuned: pd.DataFrame, beside: pd.DataFrame) -> dict[str, Any]:
    """The trainings, from scratch and fine-tuned, with intervals that hold for those from scratch."""
    known = neighbors(rows)
    known["widening"] = widening(known["rows"], known["scales"])
    more = (entry(row) for part in (beside, tuned) for _, row in part.iterrows())
    return {**known, "rows": [*known["rows"], *more]}


def chosen(
    rows: pd.DataFrame, tuned: pd.DataFrame, recipes: Sequence[str], told: bool
) -> Iterator[dict[str, Any]]:
    """The recipe for each family of optimizers, from scratch and in fine-tuning, with what it gained."""
    for scenario, part in [
        *(("scratch", some) for _, some in rows.groupby("optimizer")),
        *(("finetune", some) for _, some in tuned.groupby("optimizer")),
    ]:
        recipe, _, _, count = best_of(part, recipes, 1.0, FEWEST if scenario == "scratch" else 3)
        family = "sgd" if part["optimizer"].iloc[0] == "sgd" else "adam"
        gains = part[f"gain_{recipe}"].dropna().clip(-MOST, MOST)
        mean, low, high = clustered.interval(gains, *(part.loc[gains.index, name] for name in ("dataset", "network")))  # fmt: skip
        numbers = {"gain": mean, "low": low, "high": high} if recipe != LEAVE else {}
        yield {"optimizer": family, "scenario": scenario, "tuned": told, "recipe": recipe, "trainings": count,
               **{name: round(value, 4) for name, value in numbers.items()}}  # fmt: skip


def neighbors(rows: pd.DataFrame) -> dict[str, Any]:
    """The trainings with their coordinates, as :mod:`tstar.formula.similar` reads them; intervals are not widened yet."""
    entries = [entry(row) for _, row in rows.iterrows()]
    names = sorted({name for e in entries for name in e["coordinates"]})
    scales = {name: round(spread_of(entries, name), 4) for name in names}
    floor = round(2 * noise(rows) / math.sqrt(2), 2)
    return {"noise": floor, "scales": scales, "widening": 1.0, "rows": entries}


def spread_of(entries: Sequence[dict[str, Any]], name: str) -> float:
    """Standard deviation of a coordinate within a family of optimizers: others are never compared."""
    rest = []
    for family in ("sgd", "adam"):
        values = [
            e["coordinates"][name]
            for e in entries
            if e["optimizer"] == family and name in e["coordinates"]
        ]
        rest += list(np.array(values) - np.mean(values)) if values else []
    return float(np.std(rest))


def coverage(
    entries: Sequence[dict[str, Any]], scales: dict[str, float], wider: float, by: str
) -> float:
    """The share of gains inside the 80 % interval that the other data sets (networks) give."""
    inside = []
    for mine in entries:
        for recipe, gain in mine["gains"].items():
            rest = [e for e in entries if e[by] != mine[by]]
            near = similar.ranked(
                mine["coordinates"], mine["optimizer"], mine["norms"], rest, scales
            )
            found = similar.expected(near, recipe, 0.0, wider)
            if found is not None:
                inside.append(found.low <= gain <= found.high)
    return float(np.mean(inside))


def widening(entries: Sequence[dict[str, Any]], scales: dict[str, float]) -> float:
    """The smallest factor at which the intervals hold, with the data set left out and with the network left out."""
    for wider in np.arange(1.0, 4.01, 0.1):
        if min(coverage(entries, scales, wider, by) for by in ("dataset", "network")) >= similar.SHARE:  # fmt: skip
            break
    return round(float(wider), 2)


def main() -> None:
    every = with_gains(table(load()))
    pretrained = every["norms"] == similar.PRETRAINED  # few, and another question
    rows = every[~pretrained].reset_index(drop=True)
    finetuned = pd.concat(
        [every[pretrained], with_gains(long_runs.conditions("finetune"))], ignore_index=True
    )
    content = shipped(rows, finetuned, with_gains(long_runs.conditions("scratch")))
    SHIPPED.write_text(json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n", encoding="utf-8")  # fmt: skip
    covered = [
        {"user": user, "left out": by, "widening": wider, "coverage": coverage(known["rows"], known["scales"], wider, by)}
        for user, known in {"usual": content, "tuned": content["tuned"]}.items()
        for by in ("dataset", "network")
        for wider in (1.0, known["widening"])
    ]  # fmt: skip
    for name, made in {"advice": candidates(rows), "shipped": shipped_gains(rows), "laws": laws(rows),
                       "coverage": pd.DataFrame(covered)}.items():  # fmt: skip
        made.to_csv(FOLDER / f"{name}.csv", index=False, float_format="%.4g")
        print(made.round(2).to_string(index=False))
    print(json.dumps(content["choices"], indent=1))


if __name__ == "__main__":
    main()
