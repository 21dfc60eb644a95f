"""Run the second atlas: each condition begins with the user's own model, tuned, and goes on with the recipes.

    python -m research.second_atlas --store atlas2.db --data-root DATA --part 1/2    # and 2/2 in a second process

Stages of a condition, each decided by validation accuracy of the one before:

1. plain at the usual rate, and at sqrt(10) times and a sqrt(10)-th of it;
2. plain one half-decade further in the better direction;
3. plain at the best of these rates with ten times and a tenth of the weight decay. The best of all is *tuned plain*;
4. the recipes at the user's rate and decay: BN with T = 1 and four temperatures, matched speed, T without BN; BN with T
   at three and ten times the rate; BN and T at the tuned rate and decay; second seeds; in one condition of three, rival methods.

Of long runs and of pretrained networks, which are dear, there are fewer recipes: BN with T = 1, with the law's T and twice (and
half) of it, at three times the rate and at the tuned one, and second seeds; of pretrained networks the decay is not tuned.

A condition is one process's work from its first run to its last. Everything is in the store under its content, so that the
command goes on where it was killed.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from research.conditions import (
    DEEP,
    LONG,
    PROBES,
    SEED,
    STRATA,
    TUNING,
    Condition,
    advised,
    classes_of,
    draw,
    nice,
    predicted,
)
from research.running import Results, complete, identity
from tstar.lab.sweep.spec import Spec
from tstar.lab.sweep.store import Store

STEP = math.sqrt(10)
RIVALS = ("insert-ln", "learned-temperature", "label-smoothing")
RIVALS_EVERY = 3
FASTER = (3.0, 10.0)  # times the user's rate, with BN and the T for that rate


def accuracy(found: Results, spec: Spec, name: str = "test_accuracy") -> float | None:
    """A share; a run that diverged counts as chance; ``None`` if it was not run."""
    row = found.get(identity(spec))
    if row is None:
        return None
    return 1 / classes_of(spec) if row["status"] == "diverged" else float(row[name])


def best(found: Results, specs: list[Spec]) -> Spec | None:
    """The run with the best validation accuracy (the first of equals), once all are there."""
    scores = [accuracy(found, spec, "val_accuracy") for spec in specs]
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
    if chosen is None or condition.brief:
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
    return best(found, runs) if len(runs) == (4 if condition.brief else 6) else None


def recipes(condition: Condition, chosen: Spec) -> Iterator[Spec]:
    """The tempered runs of a condition, given its tuned plain run."""
    user = condition.plain

    def tempered(base: Spec, T: float, **changes: Any) -> Spec:
        return replace(base, temperature=nice(T), **{"norm": "batch", **changes})

    middle = predicted(user)
    yield tempered(user, 1.0)
    factors = (0.5, 1.0, 2.0) if condition.brief else (1.0, 2.0) if condition.long else (0.5, 1.0, 2.0, 4.0)  # fmt: skip
    for factor in factors:
        yield tempered(user, middle * factor)
    if condition.brief or condition.long:
        faster = condition.at(lr=FASTER[0])
        faster = tempered(faster, predicted(faster))
        yield from (faster, replace(user, seed=1), replace(faster, seed=1))
        if condition.long:
            yield tempered(user, middle, backbone="matched")
        yield from at_tuned(chosen)
        return
    if condition.family != "probe":  # which has no backbone to match
        yield tempered(user, middle, backbone="matched")
    yield tempered(user, middle, norm="none", backbone="times-t")
    higher = [tempered(at, predicted(at)) for at in (condition.at(lr=factor) for factor in FASTER)]
    yield from higher
    if chosen != user:
        yield tempered(chosen, 1.0)
        yield from at_tuned(chosen)
    for spec in (user, tempered(user, middle), higher[0]):
        yield replace(spec, seed=1)
    if condition.index % RIVALS_EVERY == 0:
        for method in RIVALS:
            yield replace(user, method=method, temperature=None, norm=None)


def at_tuned(chosen: Spec) -> Iterator[Spec]:
    """What a user who has tuned the plain model is asked to do: BN with T at the same rate and decay; two seeds of both."""
    with_norm = replace(chosen, norm="batch", temperature=advised(chosen))
    yield from (with_norm, replace(chosen, seed=1), replace(with_norm, seed=1))


def runs_of(condition: Condition, found: Results) -> list[Spec]:
    """Every run of a condition that can be named with what is known; the list grows with the results."""
    chosen = tuned(condition, found)
    tail = [] if chosen is None else list(dict.fromkeys(recipes(condition, chosen)))
    return [*plain_runs(condition, found), *tail]


def named_runs(condition: Condition, found: Results) -> dict[str, Spec]:
    return {f"run {n}": spec for n, spec in enumerate(runs_of(condition, found), 1)}


def missing(condition: Condition, found: Results) -> list[Spec]:
    return [spec for spec in runs_of(condition, found) if identity(spec) not in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--data-root", required=True)
    parser.add_argument("--conditions", type=int, default=250)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--first", type=int, choices=STRATA, default=0, help=f"Conditions from here on: {PROBES} linear probes, {LONG} and {DEEP} long runs, {TUNING} fine-tuning.")  # fmt: skip
    parser.add_argument("--part", default="1/1", help="I/N: every N-th condition, from the I-th.")
    given = parser.parse_args()
    torch.set_num_threads(1)
    part, parts = map(int, given.part.split("/"))
    chosen = range(given.first + part - 1, given.first + given.conditions, parts)
    mine = (draw(index, given.seed) for index in chosen)
    with Store(given.store, create=True) as store:
        for condition in mine:
            for line in complete(store, partial(named_runs, condition), given.data_root, "atlas2"):
                print(condition.index, line, flush=True)


if __name__ == "__main__":
    main()
