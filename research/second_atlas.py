"""Run the second atlas: each condition begins with the user's own model, tuned, and goes on with the recipes.

    python -m research.second_atlas --store atlas2.db --data-root DATA --conditions 250

Stages of a condition, each decided by validation accuracy of the one before:

1. plain at the usual rate, and at sqrt(10) times and a sqrt(10)-th of it;
2. plain one half-decade further in the better direction;
3. plain at the best of these rates with ten times and a tenth of the weight decay. The best of all is *tuned plain*;
4. the recipes at the user's rate and decay: BN with T = 1 and four temperatures, matched speed, T without BN, three
   times the rate; BN at the tuned rate and decay; second seeds; in one condition of three, rival methods.

Everything is in the store under its content, so that the command goes on where it was killed.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from research.conditions import DATA, SEED, Condition, draw, nice, predicted
from tstar.sweep.columns import FINAL
from tstar.sweep.engine import LocalEngine
from tstar.sweep.plan import make_plan
from tstar.sweep.run import run_sweep
from tstar.sweep.spec import Spec
from tstar.sweep.store import Store
from tstar.sweep.study import Study

STEP = math.sqrt(10)
RIVALS = ("insert-ln", "learned-temperature", "label-smoothing")
RIVALS_EVERY = 3
Results = dict[str, dict[str, Any]]


def identity(spec: Spec | dict[str, Any]) -> str:
    """A run's description without the data's checksum, which is only known once the data are read."""
    content = dict(spec.to_dict() if isinstance(spec, Spec) else spec)
    content.pop("data_checksum", None)
    if content["optimizer"] != "sgd":
        content.pop("momentum")
    if content["steps"] is not None:
        content.pop("epochs")
    return json.dumps(content, sort_keys=True)


def results(store: Store) -> Results:
    """Every finished run by its identity."""
    blank = Spec("x", "x", temperature=1.0, norm="none").to_dict()
    return {
        identity({**blank, **json.loads(row["spec"])}): row
        for row in store.rows()
        if row["status"] in FINAL
    }


def classes_of(spec: Spec) -> int:
    return spec.classes or next(
        sets[spec.dataset][0] for sets in DATA.values() if spec.dataset in sets
    )


def score(found: Results, spec: Spec) -> float | None:
    """Validation accuracy; a run that diverged counts as chance; ``None`` if it was not run."""
    row = found.get(identity(spec))
    if row is None:
        return None
    return 1 / classes_of(spec) if row["status"] == "diverged" else float(row["val_accuracy"])


def best(found: Results, specs: list[Spec]) -> Spec | None:
    """The run with the best validation accuracy (the first of equals), once all are there."""
    scores = [score(found, spec) for spec in specs]
    if any(value is None for value in scores):
        return None
    return specs[max(range(len(specs)), key=lambda i: scores[i] or 0.0)]


def plain_rates(condition: Condition, found: Results) -> list[Spec]:
    """Plain at the usual rate and its neighbors, and one further in the better direction."""
    three = [condition.at(lr=factor) for factor in (1.0, STEP, 1 / STEP)]
    chosen = best(found, three)
    if chosen is None:
        return three
    down = chosen is three[2]
    return [*three, condition.at(lr=1 / STEP**2 if down else STEP**2)]


def plain_runs(condition: Condition, found: Results) -> list[Spec]:
    """All plain runs that can be named with what is known."""
    rates = plain_rates(condition, found)
    chosen = best(found, rates) if len(rates) == 4 else None
    if chosen is None:
        return rates
    decay = chosen.config.weight_decay or 5e-5  # from no decay: a little, and a tenth of that
    more = [
        replace(chosen, config=replace(chosen.config, weight_decay=nice(decay * by)))
        for by in (10, 0.1)
    ]
    return [*rates, *more]


def tuned(condition: Condition, found: Results) -> Spec | None:
    """The plain run with the best validation accuracy, once all of them are there."""
    runs = plain_runs(condition, found)
    return best(found, runs) if len(runs) == 6 else None


def recipes(condition: Condition, chosen: Spec) -> Iterator[Spec]:
    """The tempered runs of a condition, given its tuned plain run."""
    user = condition.plain
    K, M = classes_of(user), user.num_features or 0
    c = user.config

    def tempered(base: Spec, T: float, **changes: Any) -> Spec:
        return replace(base, temperature=nice(T), **{"norm": "batch", **changes})

    middle = predicted(user, K, M, c.lr)
    yield tempered(user, 1.0)
    for factor in (0.5, 1.0, 2.0, 4.0):
        yield tempered(user, middle * factor)
    for factor in (1.0, 4.0):
        yield tempered(user, middle * factor, backbone="matched")
    yield tempered(user, middle, norm="none", backbone="times-t")
    if c.optimizer == "sgd":
        faster = condition.at(lr=3.0)
        for factor in (1.0, 2.0):
            yield tempered(faster, predicted(faster, K, M, faster.config.lr) * factor)
    else:
        for by in (3.0, 1 / 3):
            yield tempered(condition.at(lr=by), middle)
    if chosen != user:
        for T in (1.0, predicted(chosen, K, M, chosen.config.lr)):
            yield tempered(chosen, T)
        yield replace(chosen, seed=1)
    for spec in (user, tempered(user, 1.0), tempered(user, middle)):
        yield replace(spec, seed=1)
    if condition.index % RIVALS_EVERY == 0:
        for method in RIVALS:
            yield replace(user, method=method, temperature=None, norm=None)


def runs_of(condition: Condition, found: Results) -> list[Spec]:
    """Every run of a condition that can be named with what is known; the list grows with the results."""
    chosen = tuned(condition, found)
    tail = [] if chosen is None else list(dict.fromkeys(recipes(condition, chosen)))
    return [*plain_runs(condition, found), *tail]


def missing(condition: Condition, found: Results) -> list[Spec]:
    return [spec for spec in runs_of(condition, found) if identity(spec) not in found]


@cache
def condition(index: int, seed: int) -> Condition:
    return draw(index, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--data-root", required=True)
    parser.add_argument("--conditions", type=int, default=250)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--window", type=int, default=16, help="Conditions under way at once.")
    given = parser.parse_args()
    tried: set[str] = set()
    while True:
        with Store(given.store, create=True) as store:
            found = results(store)
            todo: list[Spec] = []
            open_conditions = 0
            for index in range(given.conditions):
                left = [
                    spec
                    for spec in missing(condition(index, given.seed), found)
                    if identity(spec) not in tried
                ]
                todo += left
                open_conditions += bool(left)
                if open_conditions == given.window:
                    break
            if not todo:
                return
            print(
                f"{len(found)} runs done; {len(todo)} next, of {open_conditions} conditions",
                flush=True,
            )
            study = Study(
                "atlas2", tuple(todo), csg=False
            )  # small subsets have classes of one sample
            plan = make_plan(study, store, data_root=given.data_root)
            run_sweep(plan, store, LocalEngine(given.workers, "cpu"), data_root=given.data_root)
            tried |= {identity(spec) for spec in todo}  # a failed run is not tried for ever


if __name__ == "__main__":
    main()
