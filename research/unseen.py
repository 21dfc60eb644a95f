"""The advice on 24 trainings that no fit had seen: predicted and committed first, then run.

    python -m research.unseen predict --data-root DATA                  # → results/unseen/predictions.csv
    python -m research.unseen run --store unseen.db --data-root DATA
    tstar runs export unseen.db results/unseen/store.parquet
    python -m research.unseen page                                      # → README.md, runs.csv, gains.png

A condition is drawn by its number: 1,000 to 8,000 steps, a native output layer, the usual rate and decay, half of them with AdamW.
The advice is what ``tstar.recommend`` says to a user with that network and data. First plain and the advice on two seeds; then a
15-run search of plain's rate and decay in the eight cheapest conditions, whose winner another seed scores, and BN with T for a user who
has tuned like that; then what a user would pick instead, on the first seed.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

import tstar
from research.clustered import interval
from research.conditions import (  # fmt: skip
    DATA,
    FAMILIES,
    KIND_OF,
    NEW_DATA,
    USUAL,
    Condition,
    nice,
    predicted,
    step_seconds,
)
from research.markdown import OPTIMIZERS, folded, table
from research.rivals import found_rates, rivals, searched
from research.running import Results, complete, exported
from research.second_atlas import accuracy
from tstar.evidence import MOST
from tstar.lab.models import build
from tstar.lab.sweep.execute import DataKey, load_data
from tstar.lab.sweep.spec import Spec
from tstar.lab.sweep.store import Store
from tstar.lab.training.config import Config

FOLDER = Path(__file__).resolve().parents[1] / "results" / "unseen"
SEED, COUNT, SEARCHED, RUNS = 30, 24, 8, 15
STEPS = (1000, 8000)
SECONDS = 70.0  # the most that a run may take, by the estimate of conditions.py
PER_CLASS = 30  # training samples of a class: what a network can learn
# Of twelve conditions with one optimizer; families and data sets of a kind come in turn.
KINDS = (*("image",) * 7, *("text",) * 2, *("signal",) * 2, "vector")
WIDTHS = {"image": (64, 128), "signal": (64, 128), "vector": (128, 256), "text": (256, 512)}
DOMAINS = {"vector": "table"}
TESTED = 500  # test samples, at the least
SETS = {
    kind: {n: s for n, s in (sets | NEW_DATA.get(kind, {})).items() if s[1] >= PER_CLASS * s[0] and s[2] >= TESTED}
    for kind, sets in DATA.items()
}  # fmt: skip
RIVALS = ("rate × 3", "Prodigy", "schedule-free AdamW", "schedule-free SGD", "AlgoPerf's NadamW", "BNNeck, rate × 3", "head × 10")  # fmt: skip
PASSES = ("advice", "search", "rivals")
WINNERS, TUNED = ["TPE, 6 runs", f"TPE, {RUNS} runs"], "BN, T at the tuned rate and decay"
NOISE = 3.0  # points: what a seed alone may make of a difference
BEGIN = """# Predicted first, then run: trainings of 1,000 to 8,000 steps

The advice for 24 trainings was written down and committed ([predictions.csv](predictions.csv)) before any of them was run.
Native output layers, usual rates and decays, half with AdamW; the design is in `research/unseen.py`.
"""
END = """
Rebuild: `python -m research.unseen run --store unseen.db --data-root DATA`, `tstar runs export unseen.db
results/unseen/store.parquet`, `python -m research.unseen page`.
"""
ADVICE = ("action", "temperature", "norm", "lr", "weight_decay", "head_lr")


def drawn() -> list[Condition]:
    """The conditions, SGD and AdamW in turn."""
    random = np.random.default_rng(SEED)
    order = {name: list(random.permutation(KINDS)) for name in ("sgd", "adamw")}
    turns: dict[str, Iterator[str]] = {}
    made = []
    for index in range(COUNT):
        optimizer = ("sgd", "adamw")[index % 2]
        kind = str(order[optimizer][index // 2])
        families = [family for family in FAMILIES if kind in FAMILIES[family]]
        family = next(turns.setdefault(kind, _in_turn(families, random)))
        data = next(turns.setdefault(f"{kind} data", _in_turn(list(SETS[kind]), random)))
        made.append(_condition(index, kind, data, family, optimizer, random))
    return made


def _in_turn(names: list[str], random: np.random.Generator) -> Iterator[str]:
    while True:
        yield from map(str, random.permutation(names))


def _condition(index: int, kind: str, dataset: str, family: str, optimizer: str, random: np.random.Generator) -> Condition:  # fmt: skip
    classes, rows, _ = SETS[kind][dataset]
    fewest = math.log(min(rows, max(1500, PER_CLASS * classes)))
    samples = min(rows, round(math.exp(random.uniform(fewest, math.log(10_000)))))
    width = int(random.choice(WIDTHS[kind]))
    batch = int(random.choice([32, 64, 128]))
    longest = SECONDS / step_seconds(family, kind, width, None, batch)
    steps = round(math.exp(random.uniform(*np.log(STEPS))))
    lr, decay = USUAL[optimizer, KIND_OF.get(family, "batch-norms")]
    how = {"steps": min(steps, max(STEPS[0], round(longest))), "batch_size": batch}
    config = Config(**how, optimizer=optimizer, lr=lr, weight_decay=decay, val_fraction=0.2)  # type: ignore[arg-type]
    plain = Spec(
        dataset, FAMILIES[family][kind], size=16 if kind == "image" else None, num_features=width,
        train_samples=None if samples == rows else samples, temperature=1.0, norm="none", config=config,
    )  # fmt: skip
    return Condition(index, family, plain)


def kind_of(condition: Condition) -> str:
    return next(kind for kind, sets in SETS.items() if condition.plain.dataset in sets)


# -- the advice --------------------------------------------------------------------------------------


def advised(plain: Spec, kind: str, data_root: str, **told: Any) -> tstar.advice.Recommendation:
    """What a user with this network, these data and this training is told."""
    data = load_data(DataKey.of(plain), data_root)
    c = plain.config
    channels = data.x_train.shape[1]
    model = build(plain.model, data.num_classes, num_features=plain.num_features, in_channels=channels)  # fmt: skip
    names = ("optimizer", "lr", "weight_decay", "steps", "batch_size")
    told |= {name: getattr(c, name) for name in names} | {"scenario": "scratch"}
    seen = round(len(data.y_train) * (1 - c.val_fraction))
    return tstar.recommend(model, data, samples=seen, domain=DOMAINS.get(kind, kind), **told)


def predict(data_root: str) -> pd.DataFrame:
    made = []
    for condition in drawn():
        advice = advised(condition.plain, kind_of(condition), data_root)
        tuned = advised(condition.plain, kind_of(condition), data_root, tuned=True)
        c, e = condition.plain.config, advice.expectation
        row = {"condition": condition.index, "family": condition.family, "dataset": condition.plain.dataset, "M": condition.plain.num_features,
               "samples": advice.facts.samples, "optimizer": c.optimizer, "usual lr": c.lr, "batch": c.batch_size, "steps": c.steps}  # fmt: skip
        row |= {name: getattr(advice, name) for name in ADVICE}
        row |= {"measured": advice.measured, "fit chance": advice.facts.fit_chance}
        row |= {n: None if e is None else getattr(e, n) for n in ("mean", "median", "low", "high")}
        row["tuned action"] = tuned.action
        made.append(row)
    return pd.DataFrame(made)


def apply(plain: Spec, row: Any) -> Spec:
    """The plain run changed as a row of the predictions says."""
    head = 1.0 if math.isnan(row["head_lr"]) else nice(row["head_lr"] / row["lr"])
    config = replace(plain.config, lr=row["lr"], weight_decay=row["weight_decay"], head_lr=head)
    norm = "batch" if row["norm"] == "batch" else "none"
    return replace(plain, norm=norm, temperature=nice(row["temperature"]), config=config)


# -- the runs ----------------------------------------------------------------------------------------


@cache
def predictions() -> pd.DataFrame:
    return pd.read_csv(FOLDER / "predictions.csv").set_index("condition")


@cache
def by_cost() -> list[Condition]:
    """The cheapest first: these are searched, and have their rivals first."""

    def seconds(c: Condition) -> float:
        M, own = c.plain.num_features or 0, c.plain.config
        return (own.steps or 0) * step_seconds(c.family, kind_of(c), M, None, own.batch_size)

    return sorted(drawn(), key=seconds)


def runs_of(condition: Condition, which: str, found: Results) -> dict[str, Spec]:
    """The runs of a pass that can be named with what is known."""
    row = predictions().loc[condition.index]
    if which == "advice":
        both = {"plain": condition.plain, "advice": apply(condition.plain, row)}
        return {f"{n}, seed {seed}": replace(s, seed=seed) for seed in (0, 1) for n, s in both.items()}  # fmt: skip
    if which == "search":
        if condition not in by_cost()[:SEARCHED]:
            return {}
        runs = searched(condition, found)
        if (best := runs.get(f"TPE, {RUNS} runs")) is not None and row["tuned action"] in ("bn", "bn1"):  # fmt: skip
            T = predicted(best) if row["tuned action"] == "bn" else 1.0
            runs[TUNED] = replace(best, norm="batch", temperature=T)
        return runs
    every = rivals(condition)
    chosen = {name: every[name] for name in RIVALS} | {"decay × 3": condition.at(weight_decay=3)}
    return chosen | {n: s for n, s in found_rates(condition, 0, found).items() if "fastai" in n}


def run(store_path: Path, data_root: str, part: str) -> None:
    torch.set_num_threads(1)
    first, parts = map(int, part.split("/"))
    with Store(store_path, create=True) as store:
        for which in PASSES:
            for condition in (drawn() if which == "advice" else by_cost())[first - 1 :: parts]:
                runs = partial(runs_of, condition, which)
                for line in complete(store, runs, data_root, "unseen"):
                    print(f"{condition.index}, {which}: {line}", flush=True)


# -- the page ----------------------------------------------------------------------------------------


def frame(found: Results) -> pd.DataFrame:
    """One row per finished run: the gain in points over the plain model of the same seed; a search's own runs are left out."""
    rows = []
    for condition in drawn():
        for which in PASSES:
            for name, spec in runs_of(condition, which, found).items():
                plain = replace(condition.plain, seed=spec.seed)
                test, base = accuracy(found, spec), accuracy(found, plain)
                if test is None or base is None or "TPE, run" in name or "the search" in name:
                    continue
                recipe = name.partition(", seed ")[0]
                rows.append({"condition": condition.index, "family": condition.family, "dataset": spec.dataset, "recipe": recipe,
                             "seed": spec.seed, "test": 100 * test, "gain": 100 * (test - base)})  # fmt: skip
    return pd.DataFrame(rows)


def told(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per condition: what was predicted, and what the advice gained, the mean of its seeds."""
    per = runs[runs["recipe"] == "advice"].groupby("condition")["gain"].agg(["mean", "size"])
    plain = runs[runs["recipe"] == "plain"].groupby("condition")["test"].mean()
    made = predictions().rename(columns={"mean": "expected"}).join(per.set_axis(["gain", "seeds"], axis=1), how="inner")  # fmt: skip
    return made.assign(plain=plain)


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """The advice and each rival, on the first seed of the conditions that have all of them."""
    first = runs[(runs["seed"] == 0) & ~runs["recipe"].isin(("plain", *WINNERS, TUNED))]
    wide = first.pivot_table(index="condition", columns="recipe", values="gain").dropna()
    if not {*RIVALS} <= {*wide.columns}:
        return pd.DataFrame()
    made = {"n": len(wide), "gain": wide.mean(), "error": wide.std() / math.sqrt(max(1, len(wide))),
            "median": wide.median(), "worst": wide.min(), "harmed": (wide < -NOISE).mean()}  # fmt: skip
    return pd.DataFrame(made).sort_values("gain", ascending=False)


def against_search(runs: pd.DataFrame) -> pd.DataFrame:
    """Where plain was searched: the advice, the winners and BN with T at the winner's rate and decay, on the fresh seed."""
    wide = runs[runs["seed"] == 1].pivot_table(index="condition", columns="recipe", values="gain")
    if not {*WINNERS} <= {*wide.columns}:
        return pd.DataFrame()
    return wide[[c for c in ("advice", *WINNERS, TUNED) if c in wide]].dropna(subset=WINNERS)


def figure(rows: pd.DataFrame) -> None:
    order = rows.sort_values("gain")
    fig, axis = plt.subplots(figsize=(8, 0.24 * len(order) + 1))
    names = [f"{r['family']}, {r['dataset']}, {r['optimizer']}" for _, r in order.iterrows()]
    y = np.arange(len(order))
    axis.hlines(
        y, order["low"], order["high"], color="#8da0b8", lw=4, label="80 % range, predicted"
    )
    axis.plot(order["expected"], y, "|", color="black", ms=9, label="predicted mean")
    axis.plot(order["gain"], y, "o", color="#c44e52", label="came")
    axis.axvline(0, color="gray", lw=0.8)
    axis.set_yticks(y, names, fontsize=7)
    axis.set_xlim(-6, max(14, 1.08 * order["gain"].max()))
    axis.set_xlabel("points of test accuracy over the plain model")
    axis.legend(fontsize=8, loc="lower right")
    fig.tight_layout()
    fig.savefig(FOLDER / "gains.png", dpi=130, metadata={"Software": None})
    plt.close(fig)


def sentences(rows: pd.DataFrame) -> str:
    """What came; in means a gain counts at most ten points."""
    held = rows["gain"].clip(-MOST, MOST)
    mean, low, high = interval(held, rows["dataset"], rows["family"])
    acted = rows[rows["action"] != "leave"]
    inside = acted["gain"].between(acted["low"], acted["high"]).mean()
    lost = (rows["gain"] < -1 - NOISE / math.sqrt(2)).sum()
    by = held.groupby(rows["optimizer"]).agg(["mean", "median", "size"])
    parts = [f"{OPTIMIZERS[name]} {r['mean']:+.1f} (median {r['median']:+.1f}, n = {r['size']:.0f})" for name, r in by.iterrows()]  # fmt: skip
    return (
        f"In {len(rows)} trainings of 1,000 to 8,000 steps that no fit had seen, the advice gained **{mean:.1f} points** over the plain model "
        f"at its usual recipe (95 % interval {low:.1f} to {high:.1f}, median {rows['gain'].median():.1f}; worst {rows['gain'].min():+.1f}, best "
        f"{rows['gain'].max():+.1f}): {', '.join(parts)}. It was to change {len(acted)} of them; {lost or 'none'} lost more than a point beyond "
        f"noise, and the 80 % ranges held {100 * inside:.0f} % of what came."
    )


def headline() -> str:
    """The first sentence, for other pages."""
    return fill(sentences(told(pd.read_csv(FOLDER / "runs.csv"))).partition(" It was")[0], 110)


def page() -> None:
    runs = frame(exported(FOLDER / "store.parquet"))
    runs.to_csv(FOLDER / "runs.csv", index=False, float_format="%.5g")
    rows = told(runs)
    figure(rows)
    lines = [
        [f"{r['family']} M={r['M']}, {r['dataset']}, {r['optimizer']}", f"{r['samples']:,}", f"{r['steps']:,}", f"{r['plain']:.1f}", r["action"],
         "–" if r["action"] == "leave" else f"{r['expected']:+.1f} ({r['low']:+.1f} to {r['high']:+.1f})", f"{r['gain']:+.1f} ({r['seeds']:.0f})"]
        for _, r in rows.iterrows()
    ]  # fmt: skip
    same = summary(runs)
    beside = [[str(name), *(f"{r[c]:+.1f}" for c in ("gain", "error", "median", "worst")), f"{100 * r['harmed']:.0f}"] for name, r in same.iterrows()]  # fmt: skip
    search = against_search(runs)
    parts = [
        BEGIN, "![Predicted range and what came](gains.png)\n", sentences(rows) + "\n",
        folded("Every training", table(["training", "samples", "steps", "plain %", "advice", "predicted", "came (seeds)"], lines)),
    ]  # fmt: skip
    if len(same):
        title = f"What a user would pick instead: first seed, {same['n'].max()} trainings that have all of them; harmed by more than {NOISE:g} points"  # fmt: skip
        parts.append(folded(title, table(["recipe", "gain", "±", "median", "worst", "harmed %"], beside)))  # fmt: skip
    if len(search):
        cells = [[str(name), f"{c.dropna().mean():+.1f}", f"{c.dropna().median():+.1f}", str(c.notna().sum())] for name, c in search.items()]  # fmt: skip
        title = f"Beside a search of plain's rate and decay in {len(search)} trainings: the winner by validation, and the advice, on a fresh seed"  # fmt: skip
        parts.append(folded(title, table(["recipe", "gain", "median", "n"], cells)))
    (FOLDER / "README.md").write_text("\n".join(parts) + "\n" + END, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("action", choices=("predict", "run", "page"))
    parser.add_argument("--store", type=Path)
    parser.add_argument("--data-root")
    parser.add_argument("--part", default="1/1", help="I/N: every N-th condition, from the I-th.")
    given = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    if given.action == "predict":
        predict(given.data_root).to_csv(
            FOLDER / "predictions.csv", index=False, float_format="%.4g"
        )
    elif given.action == "run":
        run(given.store, given.data_root, given.part)
    else:
        page()


if __name__ == "__main__":
    main()
