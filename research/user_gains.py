"""What the user gains over their own model: one record per condition of the second atlas.

    tstar runs export atlas2.db results/atlas2/store.parquet
    python -m research.user_gains          # → results/atlas2/*.csv

A condition's *default plain* is the user's model at the user's rate and decay; *tuned plain* is the best of six plain runs by
validation accuracy. Everything that is compared has the same seeds. Test accuracy scores, in points; a run that diverged
counts as chance.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from research.conditions import (
    DATA,
    KIND_OF,
    LONG,
    PROBES,
    SEED,
    STRATA,
    Condition,
    advised,
    classes_of,
    data_of,
    draw,
    features_of,
    predicted,
)
from research.running import Results, exported, identity
from research.second_atlas import (
    FASTER,
    RIVALS,
    STEP,
    accuracy,
    best,
    plain_runs,
    runs_of,
    tuned,
)
from tstar.evidence import MOST
from tstar.lab.sweep.spec import Spec

FOLDER = Path(__file__).resolve().parents[1] / "results" / "atlas2"
STORE = FOLDER / "store.parquet"
FIXED = 88  # the first condition that was run after the recipe of the advice was fixed; of the probes, the 17th


@dataclass(frozen=True)
class Measured:
    """A condition whose runs are all there."""

    condition: Condition
    found: Results

    @property
    def user(self) -> Spec:
        return self.condition.plain

    @cached_property
    def tuned(self) -> Spec:
        chosen = tuned(self.condition, self.found)
        assert chosen is not None
        return chosen

    def test(self, spec: Spec) -> float | None:
        """Test accuracy in points; ``None`` if it was not run."""
        share = accuracy(self.found, spec)
        return None if share is None else 100 * share

    def value(self, spec: Spec, name: str) -> float | None:
        row = self.found.get(identity(spec))
        return None if row is None or row[name] is None else float(row[name])

    @cached_property
    def runs(self) -> list[Spec]:
        return runs_of(self.condition, self.found)

    def curve(self, norm: str = "batch", backbone: str = "as-is") -> dict[float, float]:
        """Accuracy over T at the user's rate and decay, seed 0."""
        found = {}
        for spec in self.runs:
            same = spec.config == self.user.config and spec.seed == 0 and spec.method == "fixed"
            if same and spec.norm == norm and spec.backbone == backbone:
                accuracy = self.test(spec)
                if accuracy is not None:
                    found[float(spec.temperature or 0)] = accuracy
        return dict(sorted(found.items()))

    def at(self, T: float) -> float:
        """BN with T at the user's rate: linear in ln T between the temperatures that were run, constant outside."""
        curve = self.curve()
        return float(np.interp(math.log(T), np.log(list(curve)), list(curve.values())))

    @cached_property
    def plain(self) -> float:
        accuracy = self.test(self.user)
        assert accuracy is not None
        return accuracy

    @cached_property
    def searched(self) -> float | None:
        """What a search over rate, decay, norm and T finds: the best run of the first seed by validation."""
        every = [spec for spec in self.runs if spec.seed == 0 and spec.method == "fixed"]
        found = best(self.found, every)
        return None if found is None else self.test(found)

    @property
    def facts(self) -> dict[str, Any]:
        s, c = self.user, self.user.config
        data = data_of(s)
        kind = next((kind for kind, sets in DATA.items() if data in sets), "features")
        kind = "image" if data.endswith("_96") else kind
        matched = [
            row
            for spec in self.runs
            if spec.backbone == "matched" and (row := self.found.get(identity(spec)))
        ]
        extra = json.loads(matched[0]["extra"] or "{}") if matched else {}
        seen = round(float(self.found[identity(s)]["num_train"]) * (1 - c.val_fraction))
        return {
            "condition": self.condition.index,
            "family": self.condition.family,
            "network": self._network(data),
            "norms": KIND_OF.get(self.condition.family, "batch-norms"),
            "dataset": data,
            "kind": kind,
            "model": s.model,
            "M": features_of(s),
            "trunk": s.trunk_features or features_of(s),
            "depth": s.depth,
            "K": classes_of(s),
            "samples": seen,
            "optimizer": c.optimizer,
            "lr": c.lr,
            "momentum": c.momentum if c.optimizer == "sgd" else math.nan,
            "decay": c.weight_decay,
            "batch": c.batch_size,
            "steps": c.steps,
            "epochs": (c.steps or 0) * c.batch_size / seen,
            "schedule": c.schedule,
            "smoothing": c.label_smoothing,
            "noise": s.label_noise,
            "augment": bool(c.augment),
            "backbone_factor": extra.get("backbone_factor", math.nan),
            "train_accuracy": self.value(self.user, "train_accuracy"),
            "chance": 100 / classes_of(s),
            "parameters": _parameters().get(self.condition.index, math.nan),
        }

    def _network(self, data: str) -> str:
        """What is left out as one architecture: the family, and of probes the network whose features they take."""
        family = self.condition.family
        return f"{data.partition('_')[0]} probe" if family == "probe" else family

    def record(self) -> dict[str, Any]:
        """The facts, the two baselines and every recipe, flat."""
        row = self.facts | {"plain": self.plain, "tuned": self.test(self.tuned)}
        row |= {
            "tuned_lr": self.tuned.config.lr / self.user.config.lr,
            "tuned_decay": self.tuned.config.weight_decay,
            "plain_faster": self.test(self.condition.at(lr=STEP)),
            "plain_slower": self.test(self.condition.at(lr=1 / STEP)),
            "plain_1": self.test(replace(self.user, seed=1)),
            "tuned_1": self.test(replace(self.tuned, seed=1)),
            "best_plain_run": max(
                self.test(s) or 0 for s in plain_runs(self.condition, self.found)
            ),
            "searched": self.searched,
        }
        temperatures = self.curve()
        row["curve"] = json.dumps(temperatures)
        middle = predicted(self.user)
        row["middle"] = middle
        for name, spec in {
            "bn1": replace(self.user, norm="batch"),
            "bn": replace(self.user, norm="batch", temperature=middle),
        }.items():
            row[name], row[f"{name}_1"] = self.test(spec), self.test(replace(spec, seed=1))
        row["matched"] = next(iter(self.curve("batch", "matched").values()), None)
        row["no_norm"] = next(iter(self.curve("none", "times-t").values()), None)
        for name, T in {"tuned_bn1": 1.0, "tuned_bn": advised(self.tuned)}.items():
            spec = replace(self.tuned, norm="batch", temperature=T)
            row[name], row[f"{name}_1"] = self.test(spec), self.test(replace(spec, seed=1))
        for factor, name in zip(FASTER, ("faster_bn", "fastest_bn"), strict=True):
            at = self.condition.at(lr=factor)
            T = advised(at)
            spec = replace(at, norm="batch", temperature=T)
            row |= {
                name: self.test(spec),
                f"{name}_1": self.test(replace(spec, seed=1)),
                f"{name}_T": T,
            }
        row["keys"] = json.dumps([self.found[identity(spec)]["key"][:8] for spec in self.runs])
        for method in RIVALS:
            spec = replace(self.user, method=method, temperature=None, norm=None)
            row[method] = self.test(spec)
        return row


@cache
def _parameters() -> dict[int, float]:
    """Of each condition's network, as research.atlas_measured counted them."""
    file = FOLDER / "measured.csv"
    return pd.read_csv(file).set_index("condition")["parameters"].to_dict() if file.exists() else {}


def measured(found: Results, conditions: int = 250, seed: int = SEED) -> list[Measured]:
    """The conditions that are complete, each once: where few things vary, two draws can be the same."""
    drawn = [draw(first + i, seed) for first in STRATA for i in range(conditions)]
    once = {identity(condition.plain): condition for condition in reversed(drawn)}
    every = (Measured(condition, found) for condition in reversed(list(once.values())))
    return [
        m
        for m in every
        if tuned(m.condition, found) is not None and all(identity(spec) in found for spec in m.runs)
    ]


def table(found: Results, **which: int) -> pd.DataFrame:
    return pd.DataFrame([m.record() for m in measured(found, **which)])


# What is compared with the user's own model, and where its test accuracy stands in the table.
RECIPES = {
    "tuned plain": "tuned",
    "plain, rate × 3.2": "plain_faster",
    "plain, rate ÷ 3.2": "plain_slower",
    "BN, T = 1": "bn1",
    "BN, T": "bn",
    "BN, T, matched": "matched",
    "T without BN": "no_norm",
    "BN, T, rate × 3": "faster_bn",
    "BN, T, rate × 10": "fastest_bn",
    "Insert LN": "insert-ln",
    "learned T": "learned-temperature",
    "label smoothing": "label-smoothing",
}


def paired(rows: pd.DataFrame, column: str, base: str) -> tuple[pd.Series, pd.Series]:
    """The gain of a recipe over a baseline, the mean over the seeds that both have, and how many these are."""
    differences = pd.concat(
        [
            rows[f"{column}{seed}"].astype(float) - rows[f"{base}{seed}"].astype(float)
            for seed in ("", "_1")
            if f"{column}{seed}" in rows and f"{base}{seed}" in rows
        ],
        axis=1,
    )
    return differences.mean(axis=1), differences.notna().sum(axis=1)


def noise(rows: pd.DataFrame) -> float:
    """Standard deviation of the difference of two runs that differ by their seed alone, robustly (from the quartiles)."""
    same = pd.concat(
        [rows[name] - rows[f"{name}_1"] for name in ("plain", "bn", "faster_bn")]
    ).dropna()
    return float((same.quantile(0.75) - same.quantile(0.25)) / 1.349)


def groups(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """The parts of the atlas that are reported, each a mask."""
    fits = rows["train_accuracy"] >= 0.99
    made = {"all": pd.Series(True, index=rows.index)}
    for name in ("norms", "family", "kind", "optimizer"):
        for value in sorted(rows[name].unique()):
            made[f"{name}: {value}"] = rows[name] == value
    for kind in sorted(rows["norms"].unique()):
        for optimizer in sorted(rows["optimizer"].unique()):
            made[f"{kind}, {optimizer}"] = (rows["norms"] == kind) & (
                rows["optimizer"] == optimizer
            )
    made |= {"plain fits its training set": fits, "plain does not fit it": ~fits}
    later = rows["condition"].map(lambda i: i >= (LONG if i >= LONG else PROBES + 16 if i >= PROBES else FIXED))  # fmt: skip
    made |= {"drawn after the recipe was fixed": later, "drawn before": ~later}
    made |= {
        "5,000 steps and more": rows["steps"] >= 5_000,
        "M up to 64": rows["M"] <= 64,
        "M 128 to 256": rows["M"].between(128, 256),
        "M from 384": rows["M"] >= 384,
        "batch up to 16": rows["batch"] <= 16,
        "batch 32 to 64": rows["batch"].between(32, 64),
        "batch from 128": rows["batch"] >= 128,
        "up to 300 steps": rows["steps"] <= 300,
        "from 1,000 steps": rows["steps"] >= 1000,
        "up to 50,000 parameters": (rows["parameters"] <= 50_000) & (rows["norms"] != "frozen"),
        "from 150,000 parameters": (rows["parameters"] >= 150_000) & (rows["norms"] != "frozen"),
        "K up to 10": rows["K"] <= 10,
        "K from 50": rows["K"] >= 50,
    }
    # Fine-tuning is another question: it counts only where it is named.
    tuned = rows["norms"] == "pretrained"
    named = {"norms: pretrained", *(f"pretrained, {o}" for o in rows["optimizer"].unique())}
    named |= {f"family: {family}" for family in rows.loc[tuned, "family"].unique()}
    return {part: mask if part in named else mask & ~tuned for part, mask in made.items()}


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per part of the atlas, recipe and baseline: mean gain with its interval, helped and harmed beyond noise."""
    from research.clustered import interval

    floor = 2 * noise(rows)
    made = []
    for part, mask in groups(rows).items():
        for recipe, column in RECIPES.items():
            for baseline in ("plain", "tuned"):
                if column == baseline:
                    continue
                some = rows[mask & rows[column].notna()]
                if len(some) < 4:
                    continue
                gains, seeds = paired(some, column, baseline)
                beyond = floor / np.sqrt(seeds)
                held = gains.clip(-MOST, MOST)
                mean, low, high = interval(held, some["dataset"], some["network"])
                made.append(
                    {"part": part, "recipe": recipe, "over": baseline, "conditions": len(some), "gain": mean, "low": low,
                     "high": high, "median": gains.median(), "unbounded": gains.mean(), "helped": (gains > beyond).mean(),
                     "harmed": (gains < -beyond).mean(), "worst": gains.min(), "best": gains.max()}
                )  # fmt: skip
    return pd.DataFrame(made)


def rivals(rows: pd.DataFrame) -> pd.DataFrame:
    """The rival methods and BN with T, on the conditions that have all of them."""
    from research.clustered import interval

    names = {
        name: RECIPES[name]
        for name in ("BN, T", "BN, T = 1", "Insert LN", "learned T", "label smoothing")
    }
    some = rows.dropna(subset=list(names.values()))
    made = []
    for name, column in names.items():
        gains = (some[column].astype(float) - some["plain"]).clip(-MOST, MOST)
        mean, low, high = interval(gains, some["dataset"], some["network"])
        made.append({"recipe": name, "conditions": len(some), "gain": mean, "low": low, "high": high})  # fmt: skip
    return pd.DataFrame(made)


def main() -> None:
    found = exported(STORE)
    rows = table(found)
    FOLDER.mkdir(exist_ok=True)
    rows.drop(columns=["curve", "keys"]).to_csv(
        FOLDER / "conditions.csv", index=False, float_format="%.5g"
    )
    made = summary(rows)
    made.to_csv(FOLDER / "gains.csv", index=False, float_format="%.4g")
    rivals(rows).to_csv(FOLDER / "rivals.csv", index=False, float_format="%.4g")
    facts = {"runs": len(found), "conditions": len(rows), "noise": noise(rows),
             "fits": float((rows["train_accuracy"] >= 0.99).mean())}  # fmt: skip
    pd.Series(facts).to_csv(FOLDER / "facts.csv", header=False, float_format="%.4g")
    print(facts)
    shown = made[(made["over"] == "plain") & (made["part"] == "all")]
    print(shown.round(2).to_string(index=False))


if __name__ == "__main__":
    main()
