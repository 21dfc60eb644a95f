"""The measured trainings: one record each, with what every arm gained over the plain model.

The exports have one row per run. Runs that differ only in rate, decay, output layer, T and seed are
one training. Its user's own rate and decay are those at which most was run; an arm is named by its
norm, its temperature and its multiples of the user's numbers. A diverged run counts as chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

import tstar
from research import fresh
from tstar.case import Case, usual_rate
from tstar.formula import temperature as paper_temperature
from tstar.lab.paper import table as printed
from tstar.law import law_temperature
from tstar.training import Training

ROOT = Path(__file__).resolve().parents[1]
EVIDENCE = Path(tstar.__file__).parent / "lab" / "evidence"
SOURCES = {  # runs of the user's own optimizer in a further file belong to the trainings of the first
    "atlas2": (EVIDENCE / "atlas2.parquet", EVIDENCE / "rivals.parquet"),
    "long": (ROOT / "results" / "recipes" / "long.parquet",),
    "standard": (EVIDENCE / "standard.parquet",),
    "unseen": (EVIDENCE / "unseen.parquet",),
    "adamw": (ROOT / "results" / "recipes" / "adamw.parquet",),
}
SAME = [
    *("scenario", "dataset", "size", "num_classes", "model", "num_features", "trunk_features"),
    *("depth", "label_noise", "data_seed", "augment", "samples", "optimizer", "momentum"),
    *("schedule", "steps", "batch_size", "label_smoothing", "val_fraction"),
]
NORMS = {
    **dict.fromkeys(("vit", "convnext", "mixer", "minilm", "transformer"), "layer-norms"),
    **dict.fromkeys(("cnn", "mlp-no-norm", "lstm", "gru"), "no norms"),
    "linear": "frozen",
}
KINDS = {
    **dict.fromkeys(("vit", "minilm", "transformer"), "transformer"),
    **dict.fromkeys(("mlp", "text-mlp", "mlp-no-norm", "mixer"), "mlp"),
    **dict.fromkeys(("gru", "lstm"), "recurrent"),
    "linear": "linear",
}
METHODS = ("fixed", "insert-ln", "learned-temperature", "label-smoothing")
FEWEST = 4  # arms of a training; those with fewer were given up, or are ten of one data set


@dataclass(frozen=True)
class Arm:
    """What a run changed: norm and T of the output layer, and multiples of the user's numbers."""

    norm: bool = False
    temperature: str = "1"  # "1", "law", "cn", or a number
    rate: float = 1.0
    decay: float = 1.0
    head: float = 1.0
    method: str = "fixed"


PLAIN = Arm()


@dataclass(frozen=True)
class Measured:
    """One training as its user runs it, and the test accuracies of its arms by seed, in points."""

    source: str
    network: str
    data: str
    widened: bool
    case: Case
    runs: Mapping[Arm, Mapping[int, float]] = field(repr=False)

    def gain(self, arm: Arm, base: Arm = PLAIN) -> float | None:
        """The mean over the seeds that both have; ``None`` if there are none."""
        mine, plain = self.runs.get(arm, {}), self.runs.get(base, {})
        seeds = mine.keys() & plain.keys()
        return sum(mine[s] - plain[s] for s in seeds) / len(seeds) if seeds else None

    def nearest(self, wanted: Arm) -> Arm | None:
        """The arm that is the same but for its rate, which is the nearest within a factor of two."""
        far = {
            arm: abs(math.log(arm.rate / wanted.rate))
            for arm in self.runs
            if replace(arm, rate=1.0) == replace(wanted, rate=1.0) and self.gain(arm) is not None
        }
        arm = min(far, key=far.__getitem__, default=None)
        return arm if arm is not None and far[arm] <= math.log(2.01) else None


def measured(source: str, *, tuned: bool = False, fewest: int = FEWEST) -> Iterator[Measured]:
    """The trainings of one of ``SOURCES``.

    A ``tuned`` user has the rate and decay of the plain run with the best validation accuracy.
    """
    first, *others = SOURCES[source]
    own = _read(first)
    every = pd.concat([own, *map(_read, others)])
    runs = dict(iter(every.groupby(SAME, dropna=False, sort=False)))
    for key, part in own.groupby(SAME, dropna=False, sort=False):
        facts = dict(zip(SAME, key, strict=True))
        numbers = _best_numbers(part) if tuned else _own_numbers(source, facts, part)
        if numbers is None:
            continue
        record = _record(source, facts, runs[key], *numbers, tuned=tuned)
        if len(record.runs) >= fewest or source == "unseen":
            yield record


def _read(path: Path) -> pd.DataFrame:
    """The finished runs of the users' own optimizers, with nothing of a rival."""
    runs = pd.read_parquet(path)
    runs = runs.reindex(columns=[*{*runs.columns, *SAME, "head_lr"}])
    own = runs["method"].isin(METHODS) & runs["optimizer"].isin(("sgd", "adamw"))
    own &= runs["status"].isin(("done", "diverged")) & ~runs["schedule"].str.contains(":")
    return runs[own].assign(head_lr=runs["head_lr"].fillna(1.0)).reset_index(drop=True)


def _best_numbers(runs: pd.DataFrame) -> tuple[float, float] | None:
    plain = runs[runs["norm"].eq("none") & runs["temperature"].eq(1) & runs["head_lr"].eq(1)]
    scores = plain.loc[plain["seed"].eq(0), "val_accuracy"].dropna()
    if len(scores) < 3:  # that is no search
        return None
    best = plain.loc[scores.idxmax()]
    return best["lr"], best["weight_decay"]


def _own_numbers(
    source: str, facts: Mapping[str, Any], runs: pd.DataFrame
) -> tuple[float, float] | None:
    """Rate and decay with the most runs of seed 0; where few were run the rate is the usual one."""
    tried = runs[runs["seed"].eq(0)].groupby(["lr", "weight_decay"]).size()
    tuning = facts["scenario"] == "finetune"
    if source in ("long", "unseen") or (tuning and source == "atlas2"):
        rate = 1e-3 if "lora" in facts["model"] else 1e-4
        if not tuning or facts["optimizer"] == "sgd":
            norms, kind = _inside(facts)[1:]
            batch = 32 if tuning else 128
            rate = usual_rate(facts["optimizer"], norms, kind, facts["scenario"], batch)
        tried = tried[[math.isclose(lr, rate, rel_tol=0.01) for lr, _ in tried.index]]
    return tried.idxmax() if len(tried) else None


def _inside(facts: Mapping[str, Any]) -> tuple[str, str, str]:
    """The network's name, its norms and its kind."""
    name = facts["model"].rpartition(":")[2].removesuffix("-1d").rstrip("0123456789")
    base = name.removesuffix("_lora")
    if name == "linear":
        name = f"{facts['dataset'].partition('_')[0]} probe"
    return name, NORMS.get(base, "batch-norms"), KINDS.get(base, "convnet")


def _record(
    source: str,
    facts: Mapping[str, Any],
    runs: pd.DataFrame,
    lr: float,
    decay: float,
    *,
    tuned: bool,
) -> Measured:
    K, M = int(facts["num_classes"]), int(facts["num_features"])
    network, norms, kind = _inside(facts)
    training = Training(
        optimizer=facts["optimizer"],
        lr=lr,
        momentum=facts["momentum"],
        weight_decay=decay,
        batch_size=int(facts["batch_size"]),
        steps=int(facts["steps"]),
        samples=round(facts["samples"] * (1 - facts["val_fraction"])),
        schedule=facts["schedule"],
        label_smoothing=facts["label_smoothing"],
        scenario=facts["scenario"],
        tuned=tuned,
    )
    case = Case(M, K, training, norms, kind, batch=training.batch_size)
    arms: dict[Arm, dict[int, float]] = {}
    for run in runs.itertuples():
        T = _temperature_name(run.temperature, M, K, replace(training, lr=run.lr))
        rate, by = _times(run.lr, lr), _times(run.weight_decay, decay)
        arm = Arm(run.norm == "batch", T, rate, by, run.head_lr, run.method)
        accuracy = 1 / K if run.status == "diverged" else run.test_accuracy
        arms.setdefault(arm, {})[int(run.seed)] = 100 * accuracy
    data = facts["dataset"].rpartition(":")[2].removesuffix("_few")
    return Measured(source, network, data, pd.notna(facts["trunk_features"]), case, arms)


def _times(value: float, base: float) -> float:
    """A multiple, in two digits: rates were written in three."""
    if value == base:
        return 1.0
    return float(f"{value / base:.2g}") if base else math.inf


def _temperature_name(T: float, M: int, K: int, training: Training) -> str:
    """Whose temperature it is; the runs' law ended at 0.5."""
    if T == 1 or pd.isna(T):  # a method that has its own
        return "1"
    law = max(law_temperature(M, K, training), 0.5)
    named = {"law": law, "cn": paper_temperature(M, K)}
    return next((n for n, value in named.items() if abs(T / value - 1) < 0.02), f"{T:g}")


# -- the fresh test --------------------------------------------------------------------------------
def from_the_fresh_test() -> Iterator[Measured]:
    """Its trainings that are whole, without the rivals; a frozen trunk's is one from scratch."""
    found = fresh.exported()
    for drawn in fresh.drawn():
        known = fresh.whole(drawn, found)
        if known is None:
            continue
        numbers, by_seed = known
        M, K, probe = drawn.num_features, drawn.num_classes, drawn.norms == "frozen"
        training = fresh.as_read(drawn, numbers)
        arms: dict[Arm, dict[int, float]] = {}
        for seed, by_name in zip(fresh.SEEDS, by_seed, strict=True):
            rivals = fresh.rivals(by_name["plain"], K)
            for name, spec in by_name.items():
                if name in rivals:
                    continue
                T = _temperature_name(spec.temperature, M, K, replace(training, lr=spec.lr))
                arm = Arm(
                    spec.norm == "batch",
                    name.partition("the paper's ")[2] or T,
                    _times(spec.lr, numbers[0]),
                    _times(spec.weight_decay, numbers[1]),
                    spec.head_lr,
                )
                arms.setdefault(arm, {})[seed] = fresh.points(spec, drawn, found)
        kind = "linear" if probe else drawn.kind
        case = Case(M, K, training, drawn.norms, kind, batch=drawn.batch_size)
        model = fresh.MODELS.get(drawn.network, drawn.network)
        network = _inside({"model": model})[0] + " probe" * probe
        yield Measured("fresh", network, drawn.dataset.removesuffix("_few"), False, case, arms)


# -- the paper -------------------------------------------------------------------------------------
# It prints no sample counts: the size of the usual training split.
_SAMPLES = {
    **{"CIFAR10": 50_000, "CIFAR100": 50_000, "GTS": 26_640, "SAT": 21_600, "ISIC": 20_265},
    **{"CT": 6_941, "FLW": 1_020, "PET": 3_680, "DTD": 1_880, "CUB": 5_994},
}
_LAYER_NORMS = ("ConvNeXt-S", "ViT-B/16", "SwinT")
_TRANSFORMERS = ("ViT-B/16", "SwinT")


def from_the_paper() -> Iterator[Measured]:
    """Networks and data sets as the paper prints them: one run each, at its batch size of 128."""
    tasks, widths = printed("tasks").set_index("dataset"), printed("widths").set_index("model")
    cells = []
    for data, part in printed("models").groupby("dataset", sort=False):
        cells += [(n, data, "scratch", part, n) for n in widths.index if n in part]
    for title, part in printed("datasets").groupby("scenario", sort=False):
        network, how = str(title).split()
        scenario = "scratch" if how == "init" else "finetune"
        cells += [(network, data, scenario, part, data) for data in _SAMPLES if data in part]
    cells += [(n, "CT", "scratch", printed("transformers"), n) for n in _TRANSFORMERS]
    for network, data, scenario, part, column in cells:
        accuracy = part.set_index("method")[column].astype(float)
        lr, epochs = (0.1, 200) if scenario == "scratch" else (0.01, 50)
        training = Training(
            optimizer="sgd",
            lr=lr,
            momentum=0.9,
            weight_decay=5e-4,
            batch_size=128,
            steps=epochs * math.ceil(_SAMPLES[data] / 128),
            samples=_SAMPLES[data],
            schedule="cosine",
            scenario=scenario,
        )
        norms = "layer-norms" if network in _LAYER_NORMS else "batch-norms"
        kind = "transformer" if network in _TRANSFORMERS else "convnet"
        M, K = int(widths.at[network, "num_features"]), int(tasks.at[data, "num_classes"])
        arms = {PLAIN: {0: accuracy["T=1"]}}
        for name in ("cn", "csgcn"):
            arms[Arm(True, name)] = {0: accuracy[name]}
        case = Case(M, K, training, norms, kind, batch=128)
        yield Measured("paper", network, data, False, case, arms)
