"""The standard atlas: trainings as people run them, natively wide, augmented, long or pretrained.

    python -m research.standard --store standard.db --data-root DATA --part 1/2    # and 2/2 in a second process
    tstar runs export standard.db results/standard/store.parquet

What was expected before the runs is in results/standard/expectations.md. A condition is a network, a data set and the recipe that
people take without thinking. Its runs, each stage decided by the validation accuracy of the one before:

1. plain at the usual rate, a third of it and three times it; further by threes while the best is at the edge;
2. the output layer alone at 10 times the rate (fine-tuning: 3, 10, 30, 100); plain with 3 and 10 times the weight decay; BN before the
   output layer with T = 1, with the paper's T (cn; csgcn too where they differ by more than a third), with the law's T at the usual
   rate, at three times the rate, and that with three times the decay;
3. further seeds of plain at the usual rate, of plain at its best rate, and of the best recipe of each of the two leading roads (head,
   decay, the paper's BN, the law): one more seed from scratch, two more in fine-tuning.

The *short* conditions ask whether M counts or M over the trunk's width; the *paper* one is a row of its Figs. 5 and 6, without a
validation part. A process does a condition from its first run to its last, and a run goes on from its checkpoint. float32 and
channels-last; MiniLM, which takes half the time there, and the paper's protocol (seven eighths) in bfloat16.
"""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from research.running import Results, complete, identity
from tstar.lab.sweep.spec import Spec
from tstar.lab.sweep.store import Store
from tstar.lab.training.config import Config

STUDY = "standard"
LEADERS = 2  # roads whose best recipe gets further seeds
FURTHEST = 3  # times that the grid of plain's rates may be widened
HEADS = {"scratch": (10,), "finetune": (3, 10, 30, 100)}
# Training samples, classes, csg (tstar.csg of the training part, at 32 pixels; of texts their hashed words).
DATA = {
    "cifar10_32": (5000, 10, 4.38),
    "cifar100_32": (5000, 100, 24.7),
    "gtsrb_32": (3999, 43, 8.32),
    "flowers102_32": (3505, 102, 8.47),
    "caltech101_32": (3498, 101, 6.31),
    "cifar10_whole": (50_000, 10, 3.7),
    "fashion-mnist": (60_000, 10, 0.554),
    "clinc150": (18_000, 150, 2.12),
    "banking77": (10_003, 77, 4.48),
    "caltech101_96": (1515, 101, 6.31),
    "diamonds": (36_140, 5, 0.84),
    "movies": (8_484, 2, 0.82),
    "uci_har": (3676, 6, 0.76),
}
NOT_IMAGES = {
    "clinc150": "text",
    "banking77": "text",
    "movies": "text",
    "movies_few": "text",
    "diamonds": "table",
    "uci_har": "signal",
}
# What a recipe is called in tstar.evidence; of the output layer's rates 10 times is from scratch, 100 in fine-tuning.
ACTIONS = {
    "plain, rate × 3": "rate",
    "plain, rate × 0.333": "slower",
    "plain, decay × 3": "decay",
    "plain, head × 10": "head_lr",
    "plain, head × 100": "head_lr",
    "BN, T = 1": "bn1",
    "BN law": "bn",
    "BN law, rate × 3": "bn_rate",
    "BN law, rate × 3, decay × 3": "bn_rate_decay",
    "BN cn": "paper_cn",
    "BN csgcn": "paper_csgcn",
}
USUAL = {  # rate and decay
    ("scratch", "sgd"): (0.1, 5e-4),
    ("scratch", "adamw"): (1e-3, 0.01),
    ("finetune", "sgd"): (0.01, 5e-4),
    ("finetune", "adamw"): (1e-4, 0.01),
}


@dataclass(frozen=True)
class Condition:
    """``kind``: "full", "short" or "paper", which runs it has. ``plain`` is the usual recipe."""

    name: str
    kind: str
    M: int
    K: int
    csg: float
    plain: Spec

    @property
    def network(self) -> str:
        return self.plain.model.rpartition(":")[2]

    @property
    def seeds(self) -> int:
        return 3 if self.kind == "short" or self.plain.scenario == "finetune" else 2

    def at(self, lr: float = 1.0, decay: float = 1.0, head: float = 1.0) -> Spec:
        """Plain with the rate and the decay multiplied, and the head's rate times ``head``."""
        own = self.plain.config
        changed = {"lr": nice(own.lr * lr), "weight_decay": nice(own.weight_decay * decay)}
        return replace(self.plain, config=replace(own, **changed, head_lr=float(head)))

    def with_norm(self, T: float, lr: float = 1.0, decay: float = 1.0) -> Spec:
        return replace(self.at(lr, decay), norm="batch", temperature=nice(T))

    def law(self, lr: float = 1.0) -> float:
        """T of the law at so many times the usual rate."""
        c = self.plain.config
        if c.optimizer != "sgd":
            return 0.5 if self.plain.scenario == "finetune" else 2.0
        walk = (c.steps or 1) / (self.K * c.batch_size * (1 - c.momentum))
        return min(max(0.61 * math.sqrt(lr * c.lr * self.M) * walk**0.25, 0.25), 64.0)

    def paper(self) -> dict[str, float]:
        """The paper's two temperatures for this M, K and csg."""
        root, log_k = math.sqrt(self.M), math.log(self.K)
        cn = max(1.0, 0.4051 * root + 6.656 - 1.973 * log_k)
        csgcn = max(1.0, 0.3192 * root + 20.74 + 3.746 * math.log(self.csg) - 7.38 * log_k)
        differ = max(cn, csgcn) / min(cn, csgcn) > 4 / 3
        return {"BN cn": cn} | ({"BN csgcn": csgcn} if differ else {})


def nice(value: float) -> float:
    """Three digits, so that a rate reached in two ways is one rate."""
    return float(f"{value:.3g}")


# -- the list --------------------------------------------------------------------------------------


def scratch(model: str, M: int, data: str, *, optimizer: str = "sgd", epochs: int = 100, batch: int = 64,
            samples: int | None = None, trunk: int | None = None, steps: int | None = None, kind: str = "full") -> Condition:  # fmt: skip
    rows, K, csg = DATA[data]
    whole = rows > 10_000
    val = 0.1 if whole else 0.2
    lr, decay = USUAL["scratch", optimizer]
    config = Config(
        steps=steps or epochs * math.ceil(round((samples or rows) * (1 - val)) / batch),
        batch_size=batch,
        optimizer=optimizer,
        lr=lr,
        weight_decay=decay,
        val_fraction=val,
    )
    plain = Spec(
        data,
        model,
        size=None if data in NOT_IMAGES else 16,
        num_features=M,
        trunk_features=trunk,
        train_samples=samples,
        temperature=1.0,
        norm="none",
        config=config,
    )
    on = "" if trunk is None else f" on {trunk}"
    name = f"{model} M={M}{on}, {data}{'' if samples is None else f' {samples}'}, {optimizer}"
    return Condition(name if kind == "full" else f"{name}, {kind}", kind, M, K, csg, plain)


def finetune(model: str, data: str, optimizer: str, rate: float | None = None) -> Condition:
    images, few = model == "mobilenet", data.endswith("_few")
    lr, decay = USUAL["finetune", optimizer]
    lr = rate or lr
    config = Config(
        steps=1000,
        batch_size=16 if images else 8,
        optimizer=optimizer,
        lr=lr,
        weight_decay=decay,
        val_fraction=0.2,
        augment=images,
        amp=not images,
    )
    plain = Spec(
        f"research.{'texts' if few else 'finetuning'}:{data}",
        f"research.finetuning:{model}",
        scenario="finetune",
        weights="default",
        temperature=1.0,
        norm="none",
        config=config,
    )
    M = 1280 if images else 384
    name = data.removesuffix("_few")
    return Condition(f"{model}, {name}, {optimizer}", "full", M, *DATA[name][1:], plain)


def texts(model: str, M: int, data: str) -> Condition:
    """From scratch on tokens, with AdamW: 10 epochs."""
    like = scratch("mlp", M, data, optimizer="adamw", epochs=10)
    plain = replace(like.plain, dataset=f"research.texts:{data}", model=f"research.texts:{model}", num_features=None)  # fmt: skip
    return replace(like, name=f"text {model} M={M}, {data}, adamw", plain=plain)


def protocol() -> Condition:
    """The paper's training, in bfloat16."""
    config = Config(val_fraction=0.0, amp=True)
    plain = Spec("cifar10_whole", "resnet10", num_features=64, temperature=1.0, norm="none", config=config)  # fmt: skip
    return Condition("the paper's protocol", "paper", 64, *DATA["cifar10_whole"][1:], plain)


def short(model: str, M: int, trunk: int | None) -> Condition:
    return scratch(model, M, "gtsrb_32", batch=32, steps=800, trunk=trunk, kind="short")


# By value for money, so that whatever is finished is useful; every second one is another process's.
CONDITIONS = [
    scratch("mlp", 512, "clinc150", optimizer="adamw", epochs=20),
    scratch("vgg9", 128, "cifar10_32", samples=2500),
    short("vgg9", 64, None),
    short("vgg9", 256, 64),
    short("vgg9", 256, None),
    short("resnet10", 64, None),
    short("resnet10", 256, 64),
    short("resnet10", 256, None),
    short("vgg9", 512, 64),
    short("resnet10", 512, 64),
    short("vgg9", 512, None),
    short("resnet10", 512, None),
    finetune("mobilenet", "caltech101_96", "adamw"),
    finetune("mobilenet", "caltech101_96", "sgd"),
    scratch("resnet10", 128, "gtsrb_32"),
    finetune("minilm", "banking77", "adamw"),
    scratch("vgg9", 128, "caltech101_32"),
    finetune("minilm", "clinc150", "adamw"),
    finetune("mobilenet", "gtsrb_32", "adamw"),
    finetune("mobilenet", "gtsrb_32", "sgd"),
    scratch("resnet10", 128, "cifar100_32", optimizer="adamw"),
    scratch("vgg9", 256, "flowers102_32"),
    scratch("resnet10", 128, "cifar100_32"),
    scratch("vit4", 128, "gtsrb_32", optimizer="adamw", samples=2500),
    scratch("convnext4", 128, "cifar10_32", optimizer="adamw", samples=2500),
    scratch("pyramidnet10", 128, "gtsrb_32", samples=2500),
    scratch("resnet10", 128, "cifar10_whole", epochs=50, batch=128),
    scratch("vgg9", 512, "cifar10_32", samples=2500),
    scratch("vgg9", 128, "cifar10_whole", epochs=50, batch=128),
    scratch("resnet10", 128, "fashion-mnist", optimizer="adamw", epochs=20, batch=128),
    protocol(),
    scratch("resnet10", 512, "caltech101_32", samples=2500),
    scratch("mlp", 256, "diamonds", optimizer="adamw", epochs=20, batch=256),
    scratch("mlp-no-norm", 256, "diamonds", optimizer="adamw", epochs=20, batch=256),
    scratch("resnet10-1d", 64, "uci_har", optimizer="adamw", epochs=40),
    scratch("resnet10-1d", 64, "uci_har", epochs=40),
    scratch("mlp", 256, "diamonds", epochs=20, batch=256),
    scratch("mlp-no-norm", 256, "diamonds", epochs=20, batch=256),
    *(
        texts(model, M, "movies")
        for model, M in (("cnn", 300), ("lstm", 256), ("transformer", 128))
    ),
    *(texts(model, M, "banking77") for model, M in (("cnn", 300), ("lstm", 256))),
    finetune("minilm", "movies_few", "adamw", 2e-5),
]


# -- the runs of a condition -----------------------------------------------------------------------


def validated(condition: Condition, found: Results, spec: Spec) -> float | None:
    """Validation accuracy; a run that diverged counts as chance, one that is not there as ``None``."""
    row = found.get(identity(spec))
    if row is None:
        return None
    return 1 / condition.K if row["status"] == "diverged" else float(row["val_accuracy"])


def best(condition: Condition, found: Results, specs: dict[str, Spec]) -> str | None:
    """The name of the best by validation, the first of equals, once all are there."""
    scores = {name: validated(condition, found, spec) for name, spec in specs.items()}
    if any(value is None for value in scores.values()):
        return None
    return max(scores, key=lambda name: scores[name] or 0.0)


def rates(condition: Condition, found: Results) -> tuple[dict[str, Spec], str | None]:
    """The plain runs that can be named, and the best of them once it lies inside the grid."""
    powers = [0, -1, 1]
    for further in range(FURTHEST + 1):
        specs = {("plain" if p == 0 else f"plain, rate × {nice(3.0**p):g}"): condition.at(lr=3.0**p) for p in powers}  # fmt: skip
        chosen = best(condition, found, specs)
        if chosen is None:
            return specs, None
        power = powers[list(specs).index(chosen)]
        if min(powers) < power < max(powers) or further == FURTHEST:
            break
        powers.append(power + (1 if power == max(powers) else -1))
    return specs, chosen


def roads(condition: Condition) -> dict[str, dict[str, Spec]]:
    """The recipes by the road they take."""
    heads = HEADS[condition.plain.scenario]
    faster = condition.law(3.0)
    return {
        "head": {f"plain, head × {n}": condition.at(head=n) for n in heads},
        "decay": {f"plain, decay × {n}": condition.at(decay=n) for n in (3, 10)},
        "paper": {"BN, T = 1": condition.with_norm(1.0)}
        | {name: condition.with_norm(T) for name, T in condition.paper().items()},
        "law": {
            "BN law": condition.with_norm(condition.law()),
            "BN law, rate × 3": condition.with_norm(faster, lr=3),
            "BN law, rate × 3, decay × 3": condition.with_norm(faster, lr=3, decay=3),
        },
    }


def runs_of(condition: Condition, found: Results) -> dict[str, Spec]:
    """Every run that can be named with what is known; the list grows with the results."""
    if condition.kind == "paper":
        ways = [("none", 1), ("batch", 16), ("none", 16), ("batch", 64), ("batch", 4), ("batch", 1)]
        return {f"T = {T}, norm {norm}": replace(condition.plain, norm=norm, temperature=float(T)) for norm, T in ways}  # fmt: skip
    if condition.kind == "short":
        law = {"BN law": condition.with_norm(condition.law()), "BN law, rate × 3": condition.with_norm(condition.law(3.0), lr=3)}  # fmt: skip
        specs = {"plain": condition.plain, **law}
        deciding = specs
    else:
        specs, chosen = rates(condition, found)
        if chosen is None:
            return specs
        by_road = roads(condition)
        for recipes in by_road.values():
            specs = specs | recipes
        leading = {road: best(condition, found, recipes) for road, recipes in by_road.items()}
        leaders = {name: specs[name] for name in leading.values() if name is not None}
        if len(leaders) < len(by_road):
            return specs
        order = sorted(leaders, key=lambda n: -(validated(condition, found, leaders[n]) or 0.0))
        deciding = {name: specs[name] for name in ("plain", chosen, *order[:LEADERS])}
    for seed in range(1, condition.seeds):
        specs = specs | {f"{name}, seed {seed}": replace(spec, seed=seed) for name, spec in deciding.items()}  # fmt: skip
    return specs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--data-root", required=True)
    parser.add_argument("--part", default="1/1", help="I/N: every N-th condition, from the I-th.")
    parser.add_argument("--only", default="", help="Conditions with this in their name.")
    given = parser.parse_args()
    os.environ["TSTAR_DATA"] = given.data_root  # the pretrained weights are read from there
    torch.set_num_threads(1)
    part, parts = map(int, given.part.split("/"))
    with Store(given.store, create=True) as store:
        for condition in [c for c in CONDITIONS if given.only in c.name][part - 1 :: parts]:
            for line in complete(store, partial(runs_of, condition), given.data_root, STUDY, resume=True):  # fmt: skip
                print(f"{condition.name}: {line}", flush=True)


if __name__ == "__main__":
    main()
