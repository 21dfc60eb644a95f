"""A temperature that rises with what the head has traveled, against a constant one, at matched backbone speed.

    python -m research.rising --store rising.db --atlas results/atlas2/store.parquet --data-root DATA
    tstar runs export rising.db results/rising/store.parquet
    python -m research.rising --tables

Nine conditions of the second atlas, three of each group of families, with SGD, at the rate and decay that were tuned for the plain
model; three seeds. Then eighteen in the recipe of the advice: three times the user's rate, the backbone's gradient as it is. T rises from 1 to the constant's T, and from 1 to twice that, in proportion to the learning rate spent; a constant 2T stands beside them.
Last the test of what the nine showed: every other condition with SGD, at its tuned rate and decay, against what is advised to a user who has
tuned (BN and the constant T, the backbone's gradient as it is), which the atlas has; two seeds.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from research.conditions import draw, predicted
from research.second_atlas import Results, accuracy, identity, runs_all, tuned
from research.user_gains import STORE, load
from tstar.methods.common import Backbone, at_temperature
from tstar.methods.interface import Facts, Recipe
from tstar.surgery.finding import tempered_heads
from tstar.sweep.spec import Spec
from tstar.sweep.store import Store
from tstar.training.optim import lr_factor

FOLDER = Path(__file__).resolve().parents[1] / "results" / "rising"
GROUPS = {"BN inside": ("vgg", "resnet", "pyramidnet"), "layer norms": ("vit", "mixer", "convnext"),
          "MLP": ("mlp", "text-mlp", "mlp-no-norm")}  # fmt: skip
EACH, SEEDS = 3, 3
METHOD = "research.rising:travel"
Case = tuple[str, Spec, float]
Make = Callable[[Spec, float], dict[str, Spec]]


def travel(
    model: nn.Module,
    facts: Facts,
    *,
    end: float,
    start: float = 1.0,
    backbone: Backbone = "matched",
) -> Recipe:
    """T = start + (end − start)·(learning rate spent so far)/(spent in all), BN before the head."""
    config = facts.training
    recipe = at_temperature(model, end, facts, "batch", backbone)
    heads = list(tempered_heads(recipe.model).values())
    total = config.lr * sum(lr_factor(i, config.steps, config) for i in range(config.steps))
    spent = 0.0

    def on_batch(model: nn.Module, inputs: Tensor, targets: Tensor, lr: float) -> None:
        nonlocal spent
        for head in heads:
            head.temperature.fill_(start + (end - start) * min(1.0, spent / total))
        spent += lr

    return replace(recipe, on_batch=on_batch)


def chosen(found: Results) -> Iterator[tuple[str, Spec, float]]:
    """Group, tuned plain run and the constant's T of each condition: the first three of a group that are complete."""
    for group, families in GROUPS.items():
        count, index = 0, 0
        while count < EACH and index < 250:
            condition = draw(index)
            index += 1
            base = tuned(condition, found) if condition.family in families else None
            if base is None or base.config.optimizer != "sgd":
                continue
            T = predicted(base)
            if T >= 2:  # else there is nothing to rise to
                count += 1
                yield group, base, T


def advised(found: Results) -> Iterator[tuple[str, Spec, float]]:
    """Group, the user's own plain run at three times its rate, and T for that: the first six conditions of a group with SGD."""
    for group, families in GROUPS.items():
        count = 0
        for index in range(250):
            condition = draw(index)
            own = condition.plain.config
            if condition.family not in families or own.optimizer != "sgd" or count == 2 * EACH:
                continue
            base = condition.at(lr=3.0)
            T = predicted(base)
            if T >= 2 and tuned(condition, found) is not None:
                count += 1
                yield group, base, T


def others(found: Results) -> Iterator[tuple[str, Spec, float]]:
    """Group, tuned plain run and the law's T of every condition with SGD that is not among the nine."""
    taken = [base for _, base, _ in chosen(found)]
    for index in range(250):
        condition = draw(index)
        group = next(
            (g for g, families in GROUPS.items() if condition.family in families), "no norms"
        )
        base = tuned(condition, found)
        if base is None or base in taken or base.config.optimizer != "sgd":
            continue
        T = predicted(base)
        if T >= 2:
            yield group, base, T


def tested(base: Spec, T: float) -> dict[str, Spec]:
    """What a user who has tuned is advised, and T rising to twice the law's at matched speed in its place."""
    return {
        "constant": replace(base, norm="batch", temperature=T),
        "tuned, rising to 2T": variants(base, T)["rising to 2T"],
        "tuned, plain": base,
    }


def recipes(base: Spec, T: float) -> dict[str, Spec]:
    """The recipe of the advice, with its T constant and rising to twice that."""
    end = json.dumps({"end": 2 * T, "backbone": "as-is"})
    return {
        "constant": replace(base, norm="batch", temperature=T),
        "advised, rising to 2T": replace(
            base, method=METHOD, temperature=None, norm=None, options=end
        ),
    }


def variants(base: Spec, T: float) -> dict[str, Spec]:
    own = {"method": METHOD, "temperature": None, "norm": None}
    return {
        "plain": base,
        "constant": replace(base, norm="batch", temperature=T, backbone="matched"),
        "constant 2T": replace(base, norm="batch", temperature=2 * T, backbone="matched"),
        "rising to T": replace(base, **own, options=json.dumps({"end": T})),
        "rising to 2T": replace(base, **own, options=json.dumps({"end": 2 * T})),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("rising.db"))
    parser.add_argument("--atlas", type=Path, default=STORE)
    parser.add_argument("--data-root")
    parser.add_argument("--tables", action="store_true")
    given = parser.parse_args()
    atlas = load(given.atlas)
    parts: list[tuple[Make, list[Case]]] = [
        (variants, list(chosen(atlas))),
        (recipes, list(advised(atlas))),
        (tested, list(others(atlas))),
    ]
    if given.tables:
        found = atlas | load(FOLDER / "store.parquet")
        tables = [rows(cases, found, make) for make, cases in parts]
        pd.concat(tables).to_csv(FOLDER / "runs.csv", index=False, float_format="%.5g")
        made = pd.concat([summary(table) for table in tables])
        made.to_csv(FOLDER / "summary.csv", index=False, float_format="%.4g")
        print(made.to_string(index=False))
        return
    torch.set_num_threads(1)
    specs = [
        replace(spec, seed=seed)
        for make, cases in parts
        for seed in range(2 if make is tested else SEEDS)
        for _, base, T in cases
        for spec in make(base, T).values()
        if identity(replace(spec, seed=seed)) not in atlas
    ]
    with Store(given.store, create=True) as store:
        for outcome in runs_all(store, specs, given.data_root, "rising"):
            print(outcome.key, outcome.status, flush=True)


def rows(cases: list[Case], found: Results, make: Make) -> pd.DataFrame:
    """One row per condition, variant and seed."""
    made = []
    for number, (group, base, T) in enumerate(cases):
        for name, spec in make(base, T).items():
            for seed in range(SEEDS):
                share = accuracy(found, replace(spec, seed=seed))
                if share is not None:
                    facts = {
                        "condition": number,
                        "group": group,
                        "dataset": base.dataset,
                        "model": base.model,
                        "T": T,
                    }
                    made.append({**facts, "variant": name, "seed": seed, "test": 100 * share})  # fmt: skip
    return pd.DataFrame(made)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Each variant against the constant: mean over conditions of the paired differences, with its standard error."""
    wide = table.pivot_table(index=["group", "condition", "seed"], columns="variant", values="test").dropna()  # fmt: skip
    made = []
    for name in (n for n in wide.columns if n != "constant"):
        by_condition = (wide[name] - wide["constant"]).groupby(["group", "condition"]).mean()
        for group, part in [("all", by_condition), *by_condition.groupby("group")]:
            error = part.std(ddof=1) / np.sqrt(len(part))
            made.append({"variant": name, "group": group, "conditions": len(part), "gain": part.mean(),
                         "error": error, "worst": part.min(), "best": part.max()})  # fmt: skip
    return pd.DataFrame(made)


if __name__ == "__main__":
    main()
