"""What a user would pick instead of T, on conditions of the second atlas: same steps, seeds and data, no run of search.

    pip install prodigyopt schedulefree dog-optimizer optuna  # rival_parts has DoG too, which is not in the table
    python -m research.rivals --store rivals.db --data-root DATA
    tstar runs export rivals.db results/rivals/store.parquet

The conditions are drawn with a seed from the second atlas's trainings from scratch (research.conditions.draw, numbers below 10,000) and
done in that order, so that whatever is finished is a sample. Plain and the blocks of the advice are the second atlas's own runs, which
this code repeats to a printed digit or nearly so. First each rival on seed 0, in all conditions; then the searches; then the rivals on seed 1. A
finder's 100 steps are a run of their own, beside the training's. Optuna's TPE searches plain's rate and decay, beginning with the usual ones; the best of its first 6 and of all 15 runs, by
validation, is scored on the fresh seed. Adam-like rivals take AdamW's usual decay, 0.01, where the condition's optimizer is SGD; AlgoPerf's point brings its own.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from research.conditions import KIND_OF, PROBES, USUAL, Condition, draw, nice, predicted
from research.running import Results, complete, exported, identity
from research.second_atlas import accuracy
from tstar.lab.sweep.spec import Spec
from tstar.lab.sweep.store import Store

STUDY = "rivals"
SEED, COUNT = 29, 62
PARTS = "research.rival_parts"
ATLAS = Path(__file__).resolve().parents[1] / "results" / "atlas2"
FINDERS = {  # the rates' schedule, and the method that chooses one
    "Lightning's finder": ("lightning", "lightning_finder"),
    "fastai's valley": ("fastai", "fastai_finder"),
    "Lightning's older finder": ("lightning", "research.rival_finders:by_step_finder"),
}
PASSES = ("seed 0", "search", "seed 1")
SEARCH = (6, 15)


def drawn() -> list[int]:
    """The numbers of the conditions, in the order in which they are done."""
    known = pd.read_csv(ATLAS / "conditions.csv")["condition"]
    numbers = known[known < PROBES].sort_values().to_numpy()
    return [int(n) for n in np.random.default_rng(SEED).permutation(numbers)[:COUNT]]


def changed(spec: Spec, **config: Any) -> Spec:
    return replace(spec, config=replace(spec.config, **config))


def by_method(spec: Spec, name: str) -> Spec:
    return replace(spec, method=name if ":" in name else f"{PARTS}:{name}", temperature=None, norm=None)  # fmt: skip


def blocks(condition: Condition) -> dict[str, Spec]:
    """Plain, and what the advice chooses from: BN with the law's T at the user's rate and at higher ones."""
    specs = {"plain": condition.plain, "BN, T = 1": replace(condition.plain, norm="batch")}
    for by in (1, 3, 10):
        at = condition.at(lr=by)
        name = "BN law" if by == 1 else f"BN law, rate × {by}"
        specs[name] = replace(at, norm="batch", temperature=predicted(at))
    return specs


def rivals(condition: Condition) -> dict[str, Spec]:
    plain, own = condition.plain, condition.plain.config
    norms = KIND_OF.get(condition.family, "batch-norms")
    adam = own.weight_decay if own.optimizer == "adamw" else USUAL["adamw", norms][1]
    sgd, sgd_decay = USUAL["sgd", norms]
    sgd_decay = own.weight_decay if own.optimizer == "sgd" else sgd_decay
    free = {"schedule": "constant", "warmup": 0.05}

    def optimizer(name: str, **config: Any) -> Spec:
        return changed(plain, optimizer=f"{PARTS}:{name}", **config)

    once = {"schedule": "cosine", "warmup": 0.0, "lr": 1.0, "weight_decay": adam}
    specs = {
        "Prodigy": optimizer("prodigy", **once),
        "Prodigy, d0 = 1e-4": optimizer("prodigy_4", **once),
        "schedule-free AdamW": by_method(optimizer("free_adamw", lr=0.0025, weight_decay=adam, **free), "schedule_free"),
        "schedule-free SGD": by_method(optimizer("free_sgd", lr=nice(10 * sgd), weight_decay=sgd_decay, **free), "schedule_free"),
        "AlgoPerf's NadamW": optimizer("nadamw", lr=0.0017486, weight_decay=0.08122, schedule="cosine", warmup=0.02),
        "rate × 3": condition.at(lr=3),
        "rate × 10": condition.at(lr=10),
        "AdaCos": by_method(plain, "adacos"),
        "NormSoftmax": by_method(plain, "normsoftmax"),
    }  # fmt: skip
    specs["Prodigy, d0 = 1e-4, BN, T = 2"] = replace(
        specs["Prodigy, d0 = 1e-4"], norm="batch", temperature=2.0
    )
    for name, part in (("BNNeck", "bnneck"), ("MAE's BN", "mae_norm")):
        specs[name] = by_method(plain, part)
        specs[f"{name}, rate × 3"] = by_method(condition.at(lr=3), part)
    for by in (10, 30):
        specs[f"head × {by}"] = changed(plain, head_lr=float(by))
        specs[f"head × {by}, from zero"] = by_method(specs[f"head × {by}"], "zero_head")
    return specs


def found_rates(condition: Condition, seed: int, found: Results) -> dict[str, Spec]:
    """Each finder's run, and plain at the rate that it found once that is known."""
    specs = {}
    for name, (part, method) in FINDERS.items():
        ramp = {"lr": 1.0, "steps": 100, "schedule": f"{PARTS}:{part}_rates", "warmup": 0.0}
        finder = replace(by_method(changed(condition.plain, **ramp), method), seed=seed)
        specs[f"{name}: the search"] = finder
        row = found.get(identity(finder))
        if row is not None:
            rate = nice(json.loads(row["extra"])["suggestion"])
            specs[name] = replace(changed(condition.plain, lr=rate), seed=seed)
    return specs


def searched(condition: Condition, found: Results) -> dict[str, Spec]:
    """The trials of a search that can be named with what is known, and the winners' runs on a fresh seed."""
    import optuna  # here: only conditions with a search need it, to name its trials

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=condition.index)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.enqueue_trial({"lr": 0.0, "decay": 0.0})
    own, scores = condition.plain.config, list[float]()
    trials, winners = dict[str, Spec](), dict[str, Spec]()
    decay = own.weight_decay or 5e-5
    for number in range(1, max(SEARCH) + 1):
        trial = study.ask()
        lr = own.lr * 30.0 ** trial.suggest_float("lr", -1.0, 1.0)
        times = 10.0 ** trial.suggest_float("decay", -1.0, 2.0)
        usual = number == 1
        spec = condition.plain if usual else changed(condition.plain, lr=nice(lr), weight_decay=nice(decay * times))  # fmt: skip
        trials[f"TPE, run {number}"] = spec
        score = accuracy(found, spec, "val_accuracy")
        if score is None:
            return trials | winners
        scores.append(score)
        study.tell(trial, scores[-1])
        if number in SEARCH:
            best = trials[f"TPE, run {int(np.argmax(scores)) + 1}"]
            winners[f"TPE, {number} runs"] = replace(best, seed=1)
    return trials | winners


def runs_of(condition: Condition, which: str, found: Results) -> dict[str, Spec]:
    """Every run of a condition, of a pass, that can be named with what is known."""
    if which == "search":
        return searched(condition, found)
    seed = PASSES.index(which) // 2
    specs = {n: replace(s, seed=seed) for n, s in (blocks(condition) | rivals(condition)).items()}
    return specs | found_rates(condition, seed, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--data-root", required=True)
    parser.add_argument("--count", type=int, default=COUNT, help="The first so many conditions.")
    given = parser.parse_args()
    torch.set_num_threads(1)
    atlas = exported(ATLAS / "store.parquet")
    with Store(given.store, create=True) as store:
        for which in PASSES:
            for index in drawn()[: given.count]:
                runs = partial(runs_of, draw(index), which)
                for line in complete(store, runs, given.data_root, STUDY, known=atlas):
                    print(f"{index}, {which}: {line}", flush=True)


if __name__ == "__main__":
    main()
