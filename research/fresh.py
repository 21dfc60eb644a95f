"""A fresh test of the table of recipes: trainings drawn and predicted before any of them is run.

    python -m research.fresh predict --data-root DATA   # → results/fresh/predictions.csv
    python -m research.fresh pretrain --data-root DATA  # → DATA/NETWORK_cifar10.pt
    python -m research.fresh run --store fresh.db --data-root DATA --workers 2
    python -m research.fresh page                       # → results/fresh/README.md

results/fresh/conditions.csv was drawn, and version 0.2's advice written, by this file's earlier
versions (commits 0deae58 and d901fcb). A run takes its numbers from predictions.csv, so that what
is run is what was predicted. DATA also has what benchmarks/pretrained_weights.py and
research/atlas_data.py write.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

import tstar
from tstar.lab.sweep.execute import Job, execute
from tstar.lab.sweep.materials import DataKey, build_model, load_data, make_example
from tstar.lab.sweep.run import run_study
from tstar.lab.sweep.spec import FINAL, Spec
from tstar.lab.sweep.store import Store
from tstar.lab.sweep.study import Study
from tstar.lab.sweep.transfer import export, load_runs, rows_of
from tstar.law import law_temperature
from tstar.training import Training

FOLDER = Path(__file__).resolve().parents[1] / "results" / "fresh"
EXPORT = "store.parquet"  # in it: the finished runs
SEEDS, SEARCH_SEED = (0, 1), 2
HELD_OUT = 0.2  # share of the samples that a search is judged by
RATES, DECAYS = (1 / 9, 1 / 3, 1.0, 3.0, 9.0), (1 / 3, 1.0, 3.0)  # where a search may end
SEARCHED = 6  # trainings, the first whose users have not tuned, that a search of 15 runs tries too
MODELS = {  # those that are not the lab's; their width is their own
    **{f"text-{name}": f"research.texts:{name}" for name in ("cnn", "lstm", "transformer")},
    **{name: f"research.finetuning:{name}" for name in ("mobilenet", "minilm")},
}
PARTS = "research.rival_parts:"
FACTS = ("optimizer", "momentum", "batch_size", "steps", "samples", "schedule", "scenario", "tuned")
PRETRAINED = {"resnet10": 30, "vgg9": 30, "vit4": 15}  # epochs of whole CIFAR-10
EPOCH = 352  # steps
Drawn = Any  # a line of conditions.csv: one training in the record's names
Numbers = tuple[float, float]  # the user's rate and decay
Results = dict[str, dict[str, Any]]  # finished runs by identity


def identity(spec: Spec) -> str:
    """A run without the data's checksum, which is known once the data are read."""
    return replace(spec, data_checksum=None).key


def spec_of(row: Mapping[str, Any]) -> Spec:
    """The run of a row; a field that is gone by now had its default."""
    known, described = {item.name for item in fields(Spec)}, json.loads(row["spec"])
    return Spec(**{name: value for name, value in described.items() if name in known})


def by_identity(rows: Iterable[Mapping[str, Any]]) -> Results:
    finished = (dict(row) for row in rows if row["status"] in FINAL)
    return {identity(spec_of(row)): row for row in finished}


def exported() -> Results:
    """The runs that are kept in the repository."""
    path = FOLDER / EXPORT
    return by_identity(rows_of(load_runs(path))) if path.exists() else {}


@cache
def drawn() -> tuple[Drawn, ...]:
    """Every training, in the order in which they are run."""
    lines = pd.read_csv(FOLDER / "conditions.csv").astype(object)
    return tuple(lines.where(lines.notna(), None).itertuples(index=False, name="Drawn"))


def own_numbers(training: Drawn) -> Numbers:
    return training.lr, training.weight_decay


def as_read(training: Drawn, numbers: Numbers) -> Training:
    """The training as the library reads it: of a frozen trunk the layer alone, from scratch."""
    known = {name: getattr(training, name) for name in FACTS}
    known |= {"scenario": "scratch"} if training.norms == "frozen" else {}
    return Training(**known, lr=numbers[0], weight_decay=numbers[1])


def plain(training: Drawn, numbers: Numbers, seed: int = 0) -> Spec:
    """The user's run, in float32; ``samples`` of a training are without the part held out."""
    frozen, own = training.norms == "frozen", training.network in ("mobilenet", "minilm")
    network = f"research.finetuning:frozen_{training.network}" if frozen else training.network
    module = "research.finetuning:" if own else ""
    if training.domain == "text" and (not own or training.dataset == "movies_few"):
        module = "" if training.network.startswith("mlp") else "research.texts:"
    weights = "default" if own else f"{training.network}_cifar10.pt"
    return Spec(
        dataset=module + training.dataset,
        classes=training.num_classes,
        samples=math.ceil(training.samples / (1 - HELD_OUT)),
        val_fraction=HELD_OUT,
        size=None if training.size is None else int(training.size),
        augment=training.augment,
        model=MODELS.get(network, network),
        num_features=None if network in MODELS else training.num_features,
        scenario=training.scenario,
        weights=weights if training.scenario == "finetune" else None,
        optimizer=training.optimizer,
        lr=numbers[0],
        weight_decay=numbers[1],
        batch_size=training.batch_size,
        steps=training.steps,
        schedule=training.schedule,
        warmup=0.1 if training.schedule == "linear" else 0.0,
        temperature=1.0,
        norm="none",
        seed=seed,
    )


def digits(value: float, count: int = 3) -> float:
    """So few digits that a rate reached in two ways is one rate."""
    return float(f"{value:.{count}g}")


# -- the search of a tuned user --------------------------------------------------------------------
def stands(training: Drawn) -> Iterator[Numbers]:
    """Where the user may stand: at the drawn rate and decay, or wherever a search may end."""
    yield from grid(training) if training.tuned else [own_numbers(training)]


def grid(training: Drawn) -> list[Numbers]:
    lr, decay = own_numbers(training)
    return [(digits(lr * rate), digits(decay * by)) for rate in RATES for by in DECAYS]


def search(training: Drawn, found: Results) -> tuple[Numbers | None, list[Spec]]:
    """The user's numbers, or the runs that a search needs next.

    A third of the rate, the rate and three times it; one rate further in the better direction; a
    third of the decay and three times it at the best rate. Validation on seed 2 decides.
    """
    lr, decay = own_numbers(training)
    if not training.tuned:
        return (lr, decay), []

    def at(rate: float, by: float) -> Spec:
        return plain(training, (digits(lr * rate), digits(decay * by)), SEARCH_SEED)

    def score(rate: float, by: float = 1.0) -> float:
        return found[identity(at(rate, by))]["val_accuracy"] or 0.0  # of a diverged run

    def missing(rates: tuple[float, ...], decays: tuple[float, ...] = (1.0,)) -> list[Spec]:
        specs = [at(rate, by) for rate in rates for by in decays]
        return [spec for spec in specs if identity(spec) not in found]

    rates: tuple[float, ...] = RATES[1:4]
    if left := missing(rates):
        return None, left
    rates = (*rates, RATES[0] if score(RATES[1]) > score(RATES[3]) else RATES[4])
    if left := missing(rates):
        return None, left
    best = max(rates, key=score)
    if left := missing((best,), DECAYS):
        return None, left
    by = max(DECAYS, key=lambda by: score(best, by))
    return (digits(lr * best), digits(decay * by)), []


def searched() -> list[Drawn]:
    """The trainings in which the table is compared with a search."""
    own = [one for one in drawn() if one.scenario == "scratch" and not one.tuned]
    return own[:SEARCHED]


def search_grid(training: Drawn, found: Results) -> tuple[Numbers | None, list[Spec]]:
    """Where plain is best of 15 rates and decays, by validation on seed 2, or the runs it needs.

    Then the two seeds of the arms are run there.
    """
    tried = {numbers: plain(training, numbers, SEARCH_SEED) for numbers in grid(training)}
    left = [spec for spec in tried.values() if identity(spec) not in found]
    if left:
        return None, left
    best = max(tried, key=lambda one: found[identity(tried[one])]["val_accuracy"] or 0.0)
    again = [plain(training, best, seed) for seed in SEEDS]
    return best, [spec for spec in again if identity(spec) not in found]


# -- the predictions -------------------------------------------------------------------------------
def predict(root: str) -> pd.DataFrame:
    """What ``tstar.recommend`` says of each user's network, before anything is run."""
    lines = []
    for training in drawn():
        spec = replace(plain(training, own_numbers(training)), scenario="scratch", weights=None)
        data = load_data(DataKey.of(spec), root)
        model, example = build_model(spec, data, root), make_example(data)
        csg = difficulty(training, root) if training.scenario == "finetune" else None
        facts = {name: getattr(training, name) for name in FACTS}
        for lr, decay in stands(training):
            facts |= {"lr": lr, "weight_decay": decay}
            advice = tstar.recommend(model, example_input=example, **facts)
            gain = advice.row.native
            lines.append(
                {"number": training.number, "user_lr": lr, "user_weight_decay": decay}
                | {"row": advice.row.name, "known": advice.row.known, "norm": advice.norm}
                | {"temperature": advice.temperature, "lr": advice.lr}
                | {"weight_decay": decay, "head_lr": None, "csg": csg}
                | {n: getattr(gain, n, None) for n in ("n", "median", "low", "high")}
            )
    return pd.DataFrame(lines).astype({"n": "Int64"})


def difficulty(training: Drawn, root: str) -> float:
    """The data's csg; of texts, which a pretrained network reads as tokens, by counts of words."""
    key = DataKey.of(plain(training, own_numbers(training)))
    if training.domain == "text":
        key = DataKey(training.dataset.removesuffix("_few"), classes=training.num_classes)
    return float(tstar.csg(load_data(key, root), seed=0))


@cache
def predictions() -> dict[tuple[int, Numbers], Any]:
    lines = pd.read_csv(FOLDER / "predictions.csv").astype(object)
    rows = lines.where(lines.notna(), None).itertuples(index=False, name="Predicted")
    return {(row.number, (row.user_lr, row.user_weight_decay)): row for row in rows}


@cache
def version_2(number: int, numbers: Numbers) -> dict[str, Any]:
    """What version 0.2 advised."""
    text = (FOLDER / "kernel_advice.json").read_text(encoding="utf-8")
    known: dict[str, Any] = json.loads(text)[str(number)]
    lr, decay = numbers
    return dict(
        known["search"][f"lr={lr:g}, weight_decay={decay:g}"] if "search" in known else known
    )


# -- the arms --------------------------------------------------------------------------------------
def arms(training: Drawn, numbers: Numbers, seed: int) -> dict[str, Spec]:
    """What is compared, for a user at this rate and decay."""
    own = plain(training, numbers, seed)
    lr, decay = numbers
    predicted = predictions()[training.number, numbers]
    M, K = training.num_features, training.num_classes

    def normed(T: float, lr: float = lr) -> Spec:
        return replace(own, norm="batch", temperature=digits(T, 6), lr=lr)

    def law(lr: float) -> Spec:
        return normed(law_temperature(M, K, as_read(training, (lr, decay))), lr)

    def advised(norm: Any, temperature: Any, lr: Any, weight_decay: Any, head_lr: Any) -> Spec:
        head = digits(head_lr / lr, 6) if head_lr else 1.0
        spec = replace(own, norm=norm or "none", temperature=digits(temperature, 6))
        return replace(spec, lr=lr, weight_decay=weight_decay, head_lr=head)

    names = ("norm", "temperature", "lr", "weight_decay", "head_lr")
    by_table = advised(*(getattr(predicted, name) for name in names))
    faster = digits(3 * lr)
    known_arms = {"plain": own, "the table": by_table, "rate × 3": replace(own, lr=faster)}
    if training.scenario == "finetune":
        head = 100.0 if training.optimizer == "adamw" else 10.0
        return known_arms | {
            "rate ÷ 3": replace(own, lr=digits(lr / 3)),
            "head × 100 (AdamW), × 10 (SGD)": replace(own, head_lr=head),
            "BN, the law's T": law(lr),
            "BN, the paper's csgcn": normed(tstar.temperature(M, K, predicted.csg)),
        }
    kernel = version_2(training.number, numbers)
    return known_arms | {
        "BN, the law's T, rate × 3": law(faster),
        "decay × 3": replace(own, weight_decay=digits(3 * decay)),
        "BN, the paper's cn": normed(tstar.temperature(M, K)),
        "version 0.2": advised(*(kernel[name] for name in names)),
        **rivals(own, K),
    }


def rivals(own: Spec, num_classes: int) -> dict[str, Spec]:
    """As their authors recommend; Ultralytics' rule is ``optimizer="auto"`` of its trainer."""
    adam = own.optimizer == "adamw"
    once: dict[str, Any] = {"lr": 1.0, "schedule": "cosine", "warmup": 0.0}
    free: dict[str, Any] = {"method": f"{PARTS}schedule_free", "temperature": None, "norm": None}
    free |= {"lr": 0.0025 if adam else digits(10 * own.lr), "schedule": "constant", "warmup": 0.05}
    rule: dict[str, Any] = {"optimizer": "adamw", "lr": round(0.01 / (4 + num_classes), 6)}
    if (own.steps or 0) > 10_000:
        rule = {"optimizer": "sgd", "lr": 0.01}
    once["weight_decay"] = own.weight_decay if adam else 0.01
    return {
        "Prodigy": replace(own, optimizer=f"{PARTS}prodigy", **once),
        "schedule-free": replace(
            own, optimizer=f"{PARTS}free_{'adamw' if adam else 'sgd'}", **free
        ),
        "Ultralytics' rule": replace(own, weight_decay=5e-4, **rule),
    }


def wanted(training: Drawn, found: Results) -> list[Spec]:
    """The runs that are missing of a training: of its user's search, or of all arms and seeds."""
    numbers, left = search(training, found)
    if numbers is None:
        return left
    every = [spec for seed in SEEDS for spec in arms(training, numbers, seed).values()]
    return [
        spec for spec in {identity(s): s for s in every}.values() if identity(spec) not in found
    ]


def whole(training: Drawn, found: Results) -> tuple[Numbers, list[dict[str, Spec]]] | None:
    """The user's rate and decay, and the arms of each seed, once all have been run."""
    numbers, _ = search(training, found)
    if numbers is None or wanted(training, found):
        return None
    return numbers, [arms(training, numbers, seed) for seed in SEEDS]


def points(spec: Spec, training: Drawn, found: Results) -> float:
    """Test accuracy in percent; a run that diverged has chance."""
    run = found[identity(spec)]
    done = run["status"] == "done"
    return 100 * float(run["test_accuracy"] if done else 1 / training.num_classes)


# -- the runs --------------------------------------------------------------------------------------
def pretrain(root: str) -> None:
    """The lab's networks on whole CIFAR-10, one after the other, each with checkpoints."""
    for name, epochs in PRETRAINED.items():
        path = Path(root) / f"{name}_cifar10.pt"
        state = path.with_suffix(".checkpoint")
        if path.exists():
            continue
        how: dict[str, Any] = {"optimizer": "sgd", "lr": 0.1, "weight_decay": 5e-4}
        if name == "vit4":
            how = {"optimizer": "adamw", "lr": 1e-3, "weight_decay": 0.05, "warmup": 0.1}
        how |= {"num_features": 128, "steps": EPOCH * epochs, "temperature": 1.0, "norm": "none"}
        spec = Spec(dataset="cifar10_whole", model=name, role="teacher", **how)  # weights come back
        outcome = execute(Job(spec, root, checkpoint=(str(state), 3.0)))
        values = outcome.values
        print(name, outcome.status, values.get("test_accuracy") or values.get("error"), flush=True)
        if outcome.weights is not None:
            path.write_bytes(outcome.weights)
            state.unlink(missing_ok=True)


def run(store: Path, root: str, workers: int, only: str | None) -> None:
    """Training after training, each to its end; what was stored before is not run again."""
    for training in drawn():
        weights = plain(training, own_numbers(training)).weights
        if only not in (None, training.scenario):
            continue
        if weights not in (None, "default") and not (Path(root) / weights).exists():
            print(f"{training.number}: {weights} is missing; pretrain first", flush=True)
            continue
        run_training(wanted, training, store, root, workers)
    for training in searched() if only != "finetune" else ():
        run_training(lambda *known: search_grid(*known)[1], training, store, root, workers)


def run_training(
    missing: Callable[[Drawn, Results], list[Spec]],
    training: Drawn,
    store: Path,
    root: str,
    workers: int,
) -> None:
    def tell(row: Mapping[str, Any]) -> None:
        score, seconds = 100 * (row["test_accuracy"] or 0), row["seconds"] or 0
        error = (row["error"] or "").strip().rpartition("\n")[2]
        how = f"{training.number} {training.network} {row['key']} {row['status']}"
        print(f"{how} {score:.1f} {seconds:.0f} s {error}".rstrip(), flush=True)

    while left := missing(training, results(store)):
        study = Study(f"fresh {training.number}", tuple(left), csg=False)
        how: dict[str, Any] = {"workers": workers, "data_root": root, "checkpoint": 3.0}
        tally = run_study(study, store, on_run=tell, **how)
        if tally.failed or tally.requeued:
            print(f"{training.number}: not whole, {tally}", flush=True)
            break
    export(store, FOLDER / EXPORT)


def results(store: Path) -> Results:
    with Store(store, create=True) as opened:
        return by_identity(opened.rows())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=("predict", "pretrain", "run", "page"))
    parser.add_argument("--data-root", default=os.environ.get("TSTAR_DATA", "."))
    parser.add_argument("--store", type=Path, default=Path("fresh.db"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", choices=("scratch", "finetune"))
    given = parser.parse_args()
    root = os.environ["TSTAR_DATA"] = given.data_root  # research.finetuning looks there
    if given.action == "predict":
        predict(root).to_csv(FOLDER / "predictions.csv", index=False)
    elif given.action == "pretrain":
        pretrain(root)
    elif given.action == "run":
        run(given.store, root, given.workers, given.only)
    else:
        from research import fresh_page  # which imports this file

        fresh_page.main()


if __name__ == "__main__":
    main()
