"""A temperature that knows how you train: the candidates compared, the shipped numbers, and a test outside the atlas.

    python -m research.budget compare                 # → results/budget/{laws,conditions,by_dataset,by_way}.csv, figure
    python -m research.budget predict                 # → results/budget/predictions.csv, before any run of the study
    tstar sweep studies/fresh.toml --store fresh.db --workers 2 --data-root FOLDER
    python -m research.budget verify fresh.db         # → results/budget/{fresh.csv,fresh.png}

The coefficients of every candidate are fitted with the data set that it is judged on left out.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from research.atlas import grid, way
from research.atlas_figures import advised_against_best, plateau
from research.laws.candidates import LAWS
from research.laws.fitting import fit_law, leave_one_out, left_out_rule
from tstar.curves import Condition
from tstar.curves.resampling import clusters
from tstar.errors import TstarError
from tstar.evidence import RULES, atlas, cases, compare, noise, scores
from tstar.formula.equation import temperature
from tstar.formula.training import family
from tstar.report.style import save
from tstar.sweep.study import load_study
from tstar.sweep.transfer import load_runs

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "budget"
STUDY = ROOT / "studies" / "fresh.toml"
CHOSEN = "min(cn, limit)"
PAPER = ("ours-base", "ours-csg", "ours-cn", "ours-csgcn")


def shipped(facts: Mapping[str, Any]) -> float:
    """What ``tstar.temperature`` says when it is told how one trains."""
    momentum = facts.get("momentum")
    return temperature(
        int(facts["num_features"]),
        int(facts["num_classes"]),
        lr=float(facts["lr"]),
        optimizer=str(facts["optimizer"]),
        steps=int(facts["steps"]),
        momentum=0.9 if momentum is None or family(facts["optimizer"]) != "sgd" else momentum,
    )


def compare_laws() -> None:
    """Every candidate and rule on every condition of the atlas, with the data set left out."""
    found = cases(atlas(1), "batch")
    curves = [*map(grid, found)]
    rules = {name: RULES[name] for name in ("default", *PAPER)}
    rows = []
    for law in LAWS.values():
        rules[law.name] = left_out_rule(law, leave_one_out(law, curves))
        theta = fit_law(law, curves)
        rows.append({"rule": law.name, "says": law.says, "coefficients": len(theta), "fitted": " ".join(f"{v:.3g}" for v in theta)})  # fmt: skip
        print(law.name, rows[-1]["fitted"], flush=True)
    table = scores(found, rules)
    laws = compare(table).merge(pd.DataFrame(rows), on="rule", how="left")
    laws["standard_error"] = [_standard_error(table, name) for name in laws["rule"]]
    sure = certain_losses(table, found)
    laws["sure_losses"] = [sum(name == rule for rule, _ in sure) for name in laws["rule"]]
    laws["noise"] = noise(curves)[0]
    _write(laws.sort_values("regret"), "laws")
    kept = table[table["rule"].isin(("default", "ours-cn", CHOSEN))]
    _write(kept, "conditions")
    for name, column in (("by_dataset", "dataset"), ("by_way", "way")):
        part = kept.assign(way=[way(row) for _, row in kept.iterrows()])
        groups = part.groupby([column, "rule"]).agg(conditions=("regret", "size"), regret=("regret", "mean"), gain_bn=("gain_bn", "mean"), worst=("gain_bn", "min"))  # fmt: skip
        _write(groups.reset_index(), name)
    advice = {"before: the paper's cn": "ours-cn", "after: it knows the training": CHOSEN}
    parts = {title: (curves, [rules[rule](case.facts) for case in found]) for title, rule in advice.items()}  # fmt: skip
    save(advised_against_best(parts), RESULTS / "advised_against_best.png")
    print(laws.sort_values("regret")[["rule", "regret", "standard_error", "captured", "wins", "ties", "losses", "worst", "sure_losses"]].round(2).to_string(index=False))  # fmt: skip


def _standard_error(table: pd.DataFrame, name: str) -> float:
    """Of the mean regret, over data sets that share no data: they are what a new user brings."""
    mine = table[table["rule"] == name].sort_values("condition")
    regret = mine["regret"].to_numpy()
    groups = clusters([*mine["dataset"].astype(str)])
    parts = np.array([(regret[places] - regret.mean()).sum() for places in groups]) / len(regret)
    return float(np.sqrt(np.sum(parts**2) * len(groups) / (len(groups) - 1)))


def certain_losses(table: pd.DataFrame, found: list[Condition]) -> list[tuple[str, int]]:
    """(rule, condition) that lose more than a point to BN, T = 1 beyond two standard errors.

    The error of a difference of two accuracies is pooled over the conditions with two seeds and up
    (:func:`seed_spread`). Below the plateau seeds may scatter more: read it as a rough guide.
    """
    spread = seed_spread(found)
    lost = []
    for _, row in table.iterrows():
        allowed = 1 + 2 * spread / np.sqrt(row["seeds"])
        if row["gain_bn"] < -allowed:
            lost.append((row["rule"], row["condition"]))
    return lost


def seed_spread(found: list[Condition]) -> float:
    """The standard deviation between seeds of accuracy(T) − accuracy(1), in points, for T within three points of the best."""
    squares, freedom = 0.0, 0
    for case in map(grid, found):
        if len(case.seeds) < 2 or 1.0 not in case.temperatures:
            continue
        low, high = plateau(case, 0.03)
        one = case.test[:, list(case.temperatures).index(1.0)]
        for i, T in enumerate(case.temperatures):
            if low <= T <= high and T != 1.0:
                difference = 100 * (case.test[:, i] - one)
                squares += float(((difference - difference.mean()) ** 2).sum())
                freedom += len(case.seeds) - 1
    return float(np.sqrt(squares / freedom)) if freedom else float("nan")


def predict() -> None:
    """Write down T for every condition of the study, before it is run."""
    classes = {"cifar10_32": 10, "gtsrb_32": 43, "banking77": 77, "clinc150": 150, "flowers102_32": 102, "fashion_5k": 10, "caltech101_32": 101}  # fmt: skip
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for spec in load_study(STUDY).specs:
        c = spec.config
        facts = {
            "dataset": spec.dataset, "model": spec.model, "num_features": spec.num_features,
            "num_classes": classes[spec.dataset], "optimizer": c.optimizer, "lr": c.lr, "steps": c.steps,
            "momentum": c.momentum, "label_smoothing": c.label_smoothing,
        }  # fmt: skip
        told = {**facts, "paper_cn": RULES["ours-cn"](facts), "predicted": shipped(facts)}
        rows[tuple(facts.values())] = told
    _write(pd.DataFrame(rows.values()), "predictions")


def verify(store: Path) -> None:
    """The predictions beside what the runs gave."""
    runs = load_runs(store)
    found = cases(runs[runs["status"].isin(("done", "diverged"))], "batch")
    with (RESULTS / "predictions.csv").open(encoding="utf-8") as file:
        told = list(csv.DictReader(file))
    rows, kept, before, after = [], [], [], []
    for line in told:
        case = next((c for c in found if _same(c.facts, line)), None)
        if case is None:
            raise TstarError(f"Every prediction must have its runs, but there are none for {line}.")
        T, cn = float(line["predicted"]), float(line["paper_cn"])
        condition, case = case, grid(case)
        low, high = plateau(case)
        rows.append({
            **line, "best": case.best, "within_a_point": f"{low:g} to {high:g}", "accuracy_1": 100 * case.at(1.0),
            "accuracy_cn": 100 * case.at(cn), "accuracy_predicted": 100 * case.at(T), "accuracy_best": 100 * case.at(case.best),
        })  # fmt: skip
        kept.append(condition), before.append(cn), after.append(T)
    table = pd.DataFrame(rows)
    _write(table, "fresh")
    parts = {
        "before: the paper's cn": ([*map(grid, kept)], before),
        "after: predicted": ([*map(grid, kept)], after),
    }
    save(advised_against_best(parts), RESULTS / "fresh.png")
    rules = {"default": lambda facts: 1.0, "ours-cn": RULES["ours-cn"], "budget": shipped}
    print(table.to_string(index=False))
    print(compare(scores(kept, rules)).round(3).to_string(index=False))


def _same(facts: Mapping[str, Any], line: Mapping[str, str]) -> bool:
    words = all(str(facts[name]) == line[name] for name in ("dataset", "model", "optimizer"))
    numbers = ("num_features", "lr", "steps", "label_smoothing")
    plain = family(line["optimizer"]) == "sgd" and float(line["momentum"]) != facts["momentum"]
    if plain:
        return False
    return words and all(float(facts[name]) == float(line[name]) for name in numbers)


def _write(table: pd.DataFrame, name: str) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    table.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.5g")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("compare")
    commands.add_parser("predict")
    commands.add_parser("verify").add_argument("store", type=Path)
    args = parser.parse_args()
    if args.command == "verify":
        verify(args.store)
    else:
        {"compare": compare_laws, "predict": predict}[args.command]()


if __name__ == "__main__":
    main()
