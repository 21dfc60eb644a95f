"""A fresh test of the table of recipes: trainings that are drawn and advised before any of them is run.

    python -m research.fresh draw                        # → results/fresh/conditions.csv

What version 0.2 advised is results/fresh/kernel_advice.json, written by this file of commit d901fcb.

``SEED`` draws everything. From scratch there are twelve trainings with SGD and twelve with AdamW: seven of images,
three of texts, one of signals and one of tables each. Four of each twelve have more than 4,000 steps, and four of
each twelve users have tuned: a small search of the plain model sets their rate and decay. Output layers are native.
Fourteen trainings are fine-tunings at the usual rate, two of them with a frozen trunk.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tstar.lab.sweep.spec import Spec

FOLDER = Path(__file__).resolve().parents[1] / "results" / "fresh"
SEED = 40
HELD_OUT = 0.2  # share of the samples that a search is judged by
PER_CLASS = 24  # samples of a class that are trained on, at the least
SAMPLES = {"scratch": (1500, 10_000), "finetune": (500, 5000)}
STEPS = {"short": (1000, 4000), "long": (4000, 8000), "finetune": (300, 2000)}
SECONDS = 110.0  # the most that one run may take on one core, by ``step_seconds``
LONG, TUNED = 4, 4  # of the twelve trainings with one optimizer
RATES, DECAYS = (
    (1 / 9, 1 / 3, 1.0, 3.0, 9.0),
    (1 / 3, 1.0, 3.0),
)  # where a search may end, times the usual ones


@dataclass(frozen=True)
class Network:
    """A network as the lab builds it; ``cost`` is milliseconds per step and per sample (16 pixels, M = 64)."""

    kind: str
    norms: str
    widths: tuple[int, ...]
    cost: tuple[float, float]
    model: str = ""


NETWORKS = {
    "resnet10": Network("convnet", "batch-norms", (64, 128), (3, 0.09)),
    "vgg9": Network("convnet", "batch-norms", (64, 128, 256), (2, 0.06)),
    "pyramidnet10": Network("convnet", "batch-norms", (64, 128), (4, 0.3)),
    "cnn4": Network("convnet", "no norms", (64, 128, 256), (1, 0.035)),
    "vit4": Network("transformer", "layer-norms", (64, 128), (4, 0.2)),
    "convnext4": Network("convnet", "layer-norms", (64, 128), (8, 0.3)),
    "mixer4": Network("mlp", "layer-norms", (64, 128), (4, 0.17)),
    "resnet10-1d": Network("convnet", "batch-norms", (64, 128), (2, 0.12)),
    "cnn4-1d": Network("convnet", "no norms", (64, 128), (1, 0.05)),
    "mlp": Network("mlp", "batch-norms", (128, 256, 512), (0.5, 0.02)),
    "mlp-no-norm": Network("mlp", "no norms", (128, 256, 512), (0.5, 0.02)),
    "text-cnn": Network("convnet", "no norms", (300,), (12, 0.06), "research.texts:cnn"),
    "text-lstm": Network("recurrent", "no norms", (256,), (12, 0.1), "research.texts:lstm"),
    "text-transformer": Network(
        "transformer", "layer-norms", (128,), (12, 0.4), "research.texts:transformer"
    ),
    "mobilenet": Network(
        "convnet", "batch-norms", (1280,), (5, 2.1), "research.finetuning:mobilenet"
    ),
    "minilm": Network(
        "transformer", "layer-norms", (384,), (20, 7.0), "research.finetuning:minilm"
    ),
}
# Data sets by domain: classes, training samples (validation included).
DATA = {
    "image": {
        "cifar10_whole": (10, 50_000),
        "cifar100_32": (100, 5000),
        "gtsrb_32": (43, 3999),
        "flowers102_32": (102, 3505),
        "caltech101_32": (101, 3498),
    },
    "text": {"banking77": (77, 10_003), "clinc150": (150, 15_000), "movies": (2, 8484)},
    "signal": {"uci_har": (6, 3676)},
    "table": {"diamonds": (5, 36_140)},
}
# Which networks the twelve have, by optimizer; images first.
SCRATCH = {
    "sgd": {
        "image": ("resnet10", "resnet10", "vgg9", "vgg9", "pyramidnet10", "cnn4", "convnext4"),
        "text": ("mlp", "mlp-no-norm", "text-cnn"),
        "signal": ("resnet10-1d",),
        "table": ("mlp-no-norm",),
    },
    "adamw": {
        "image": ("vit4", "vit4", "convnext4", "mixer4", "resnet10", "vgg9", "cnn4"),
        "text": ("text-cnn", "text-lstm", "text-transformer"),
        "signal": ("cnn4-1d",),
        "table": ("mlp",),
    },
}
HASHED = ("mlp", "mlp-no-norm")  # take texts as counts of hashed words, the others as tokens
# Learning rates, weight decays and schedules as people take them: decks, each dealt in random order and then anew.
USUAL = {
    "lr, sgd, batch-norms": (0.1, 0.1, 0.1, 0.05, 0.01),
    "lr, sgd, layer-norms": (0.03, 0.01),
    "lr, sgd, no norms": (0.01, 0.01, 0.03),
    "lr, adamw": (1e-3, 1e-3, 1e-3, 5e-4, 3e-4),
    "weight_decay, sgd": (5e-4, 5e-4, 1e-4),
    "weight_decay, adamw": (0.01, 0.01, 0.01, 0.05, 1e-4),
    "schedule": (*("cosine",) * 5, "linear", "one-cycle", "constant"),
}
# Pretrained networks: network, data set, optimizer, classes (all if None), frozen. Those that are not MobileNet or
# MiniLM are pretrained on whole CIFAR-10 first (``pretrain``).
FINETUNED = (
    ("mobilenet", "caltech101_96", "sgd", 60, False),
    ("mobilenet", "flowers102_96", "adamw", None, False),
    ("mobilenet", "gtsrb_32", "sgd", None, False),
    ("mobilenet", "cifar10_32", "adamw", None, False),
    ("minilm", "banking77", "adamw", None, False),
    ("minilm", "clinc150", "adamw", 50, False),
    ("minilm", "movies_few", "adamw", None, False),
    ("resnet10", "flowers102_32", "sgd", None, False),
    ("resnet10", "cifar100_32", "sgd", 20, False),
    ("resnet10", "caltech101_32", "adamw", None, False),
    ("vgg9", "gtsrb_32", "sgd", 15, False),
    ("vgg9", "caltech101_32", "sgd", None, True),
    ("vit4", "cifar100_32", "adamw", None, True),
    ("vit4", "flowers102_32", "sgd", 40, False),
)
FINETUNED_DATA = {
    "caltech101_96": (101, 1515),
    "flowers102_96": (102, 1530),
    "gtsrb_32": (43, 3999),
    "cifar10_32": (10, 5000),
    "banking77": (77, 10_003),
    "clinc150": (150, 15_000),
    "movies_few": (2, 2500),
    "flowers102_32": (102, 3505),
    "caltech101_32": (101, 3498),
    "cifar100_32": (100, 5000),
}
THINNED = 2500  # the most samples of research.finetuning's sets


@dataclass(frozen=True)
class Drawn:
    """One training, in the record's names; ``samples`` are trained on, a validation part is beside them."""

    number: int
    scenario: str
    network: str
    dataset: str
    domain: str
    kind: str
    norms: str
    num_features: int
    num_classes: int
    samples: int
    optimizer: str
    lr: float
    momentum: float | None
    weight_decay: float
    batch_size: int
    steps: int
    epochs: float
    schedule: str
    label_smoothing: float
    tuned: bool
    size: int | None
    augment: bool
    amp: bool
    seconds: float  # of one run on one core, estimated

    def spec(self) -> Spec:
        """The plain run at the drawn rate and decay."""
        network, pretrained = NETWORKS[self.network], self.scenario == "finetune"
        own = {"mobilenet": "default", "minilm": "default"}
        config: dict[str, Any] = dict(
            steps=self.steps,
            batch_size=self.batch_size,
            optimizer=self.optimizer,
            lr=self.lr,
            weight_decay=self.weight_decay,
            schedule=self.schedule,
            warmup=0.1 if self.schedule == "linear" else 0.0,
            val_fraction=HELD_OUT,
            augment=self.augment,
            amp=self.amp,
        )
        frozen = pretrained and self.norms == "frozen"
        model = (
            f"research.finetuning:frozen_{self.network}"
            if frozen
            else network.model or self.network
        )
        fixed = network.model != ""  # its width is its own
        available = (FINETUNED_DATA if pretrained else DATA[self.domain])[self.dataset][0]
        return Spec(
            dataset=self._reader() + self.dataset,
            model=model,
            size=self.size,
            num_features=None if fixed else self.num_features,
            scenario=self.scenario,
            weights=own.get(self.network, f"{self.network}_cifar10.pt") if pretrained else None,
            classes=None if self.num_classes == available else self.num_classes,
            samples=math.ceil(self.samples / (1 - HELD_OUT)),
            temperature=1.0,
            norm="none",
            **config,
        )

    def _reader(self) -> str:
        """The module that reads the data set; none for those of the lab."""
        if self.network in ("mobilenet", "minilm"):
            return "research.texts:" if self.dataset == "movies_few" else "research.finetuning:"
        return "research.texts:" if self.domain == "text" and self.network not in HASHED else ""


def step_seconds(network: str, num_features: int, size: int | None, batch_size: int) -> float:
    """On one core, from earlier runs; those of MobileNet and MiniLM have sizes of their own."""
    fixed, sample = NETWORKS[network].cost
    width = 1.0 if NETWORKS[network].model else num_features / 64
    pixels = 1.0 if size is None or network in ("mixer4", "mobilenet") else (size / 16) ** 2
    return (fixed + batch_size * sample * width * pixels) / 1000


def drawn() -> list[Drawn]:
    """Every training: 24 from scratch, SGD and AdamW in turn, and the fine-tunings, in the order of their runs."""
    random = np.random.default_rng(SEED)
    decks = {name: _dealt(cards, random) for name, cards in USUAL.items()}
    halves = [_half(optimizer, random, decks) for optimizer in SCRATCH]
    scratch = [training for pair in zip(*halves, strict=True) for training in pair]
    order = random.permutation(len(FINETUNED))
    tuned = [_finetuning(*FINETUNED[place], random) for place in order]
    return [replace(training, number=n) for n, training in enumerate([*scratch, *tuned], 1)]


def _dealt(cards: tuple[Any, ...], random: np.random.Generator) -> Iterator[Any]:
    while True:
        yield from (cards[place] for place in random.permutation(len(cards)))


def _half(
    optimizer: str, random: np.random.Generator, decks: Mapping[str, Iterator[Any]]
) -> list[Drawn]:
    """The trainings from scratch with one optimizer, in random order."""
    pairs = []
    for domain, networks in SCRATCH[optimizer].items():
        sets = [str(name) for _ in networks for name in random.permutation(list(DATA[domain]))]
        pairs += [(domain, network, data) for network, data in zip(networks, sets, strict=False)]
    pairs = [pairs[place] for place in random.permutation(len(pairs))]
    count = len(pairs)
    long, tuned = (random.permutation(count) < many for many in (LONG, TUNED))
    return [
        _from_scratch(optimizer, *pair, bool(long[i]), bool(tuned[i]), random, decks)
        for i, pair in enumerate(pairs)
    ]


def _from_scratch(
    optimizer: str,
    domain: str,
    network: str,
    dataset: str,
    long: bool,
    tuned: bool,
    random: np.random.Generator,
    decks: Mapping[str, Iterator[Any]],
) -> Drawn:
    facts = NETWORKS[network]
    classes, rows = DATA[domain][dataset]
    width = int(random.choice(facts.widths))
    batch = int(random.choice([32, 64, 128]))
    size = int(random.choice([16, 24, 32])) if domain == "image" else None
    fewest, most = STEPS["long" if long else "short"]
    steps = _between(random, fewest, most)
    while (
        steps * step_seconds(network, width, size, batch) > SECONDS
    ):  # fewer pixels, samples, steps
        if size is not None and size > 16:
            size -= 8
        elif batch > 32:
            batch //= 2
        else:
            steps = max(fewest, round(SECONDS / step_seconds(network, width, size, batch)))
            break
    least, largest = SAMPLES["scratch"]
    there = int(rows * (1 - HELD_OUT))
    samples = _between(random, min(there, max(least, PER_CLASS * classes)), min(there, largest))
    rates = decks["lr, adamw" if optimizer == "adamw" else f"lr, sgd, {facts.norms}"]
    return Drawn(
        number=0,
        scenario="scratch",
        network=network,
        dataset=dataset,
        domain=domain,
        kind=facts.kind,
        norms=facts.norms,
        num_features=width,
        num_classes=classes,
        samples=samples,
        optimizer=optimizer,
        lr=next(rates),
        momentum=0.9 if optimizer == "sgd" else None,
        weight_decay=next(decks[f"weight_decay, {optimizer}"]),
        batch_size=batch,
        steps=steps,
        epochs=round(steps * batch / samples, 1),
        schedule=next(decks["schedule"]),
        label_smoothing=0.0,
        tuned=tuned,
        size=size,
        augment=domain == "image",
        amp=domain == "image" and facts.kind == "convnet",
        seconds=round(steps * step_seconds(network, width, size, batch), 1),
    )


def _finetuning(
    network: str,
    dataset: str,
    optimizer: str,
    classes: int | None,
    frozen: bool,
    random: np.random.Generator,
) -> Drawn:
    facts = NETWORKS[network]
    available, rows = FINETUNED_DATA[dataset]
    text, own = network == "minilm", network not in ("mobilenet", "minilm")
    classes = classes or available
    rows = (rows if own else min(rows, THINNED)) * classes // available
    batch = 32 if own else 16
    width = 128 if own else facts.widths[0]
    size = 32 if own else None
    fewest, most = STEPS["finetune"]
    cost = step_seconds(network, width, size, batch)
    steps = _between(random, fewest, min(most, max(fewest, round(SECONDS / cost))))
    there = int(rows * (1 - HELD_OUT))
    least, largest = SAMPLES["finetune"]
    samples = _between(random, min(there, max(least, 8 * classes)), min(there, largest))
    rate = (0.1 if frozen else 0.01) if optimizer == "sgd" else 1e-3 if frozen else 1e-4
    if facts.kind == "transformer" and optimizer == "adamw" and not frozen:
        rate = 5e-5
    return Drawn(
        number=0,
        scenario="finetune",
        network=network,
        dataset=dataset,
        domain="text" if text else "image",
        kind=facts.kind,
        norms="frozen" if frozen else facts.norms,
        num_features=width,
        num_classes=classes,
        samples=samples,
        optimizer=optimizer,
        lr=rate,
        momentum=0.9 if optimizer == "sgd" else None,
        weight_decay=5e-4 if optimizer == "sgd" else 0.01,
        batch_size=batch,
        steps=steps,
        epochs=round(steps * batch / samples, 1),
        schedule="cosine",
        label_smoothing=0.0,
        tuned=False,
        size=size,
        augment=not text,
        amp=text or (own and facts.kind == "convnet"),
        seconds=round(steps * cost, 1),
    )


def _between(random: np.random.Generator, low: int, high: int) -> int:
    """Evenly in the logarithm."""
    return round(math.exp(random.uniform(math.log(low), math.log(max(low, high)))))


def table() -> pd.DataFrame:
    return pd.DataFrame([asdict(training) for training in drawn()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("action", choices=("draw",))
    parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    table().to_csv(FOLDER / "conditions.csv", index=False)


if __name__ == "__main__":
    main()
