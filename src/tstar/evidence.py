"""The measured trainings, which of them are like yours, and what they gained.

One table, ``evidence.json``: one row per training, with its facts and what each *action* gained in
points of test accuracy over the plain model. Its sources are our second atlas, longer runs and the
standard atlas ("standard": trainings as people run them), trainings that were predicted first
("unseen"), an independent check of two ("independent"), and the paper's own tables ("paper": one
run each, as printed).

    rate, slower, decay     the plain model at 3 times the rate; at a third of it; 3 times the decay
    head_lr                 with 10 times the rate for the output layer (100 times in fine-tuning)
    bn, bn1                 BatchNorm and the law's T at your rate; BatchNorm alone
    bn_rate, bn_rate_decay  BatchNorm and the law's T at 3 times the rate; and 3 times the decay
    paper_cn, paper_csgcn   BatchNorm and the paper's T

What is far counts less, gradually, and the stated range widens. Pure Python. What follows from the
evidence is decided in ``advice.py``.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tstar.training import Training

SIMPLE = ("rate", "slower", "decay", "head_lr")  # no surgery
ACTIONS = (*SIMPLE, "bn", "bn1", "bn_rate", "bn_rate_decay", "paper_cn", "paper_csgcn")
MOST = 10.0  # points: a gain or loss counts at most so much in a mean, so that no one run decides
SHARE = 0.8  # of the stated range
# Typical spreads of the logarithms, over the second atlas.
SCALES = {
    "travel": 1.6,  # lr·steps/(1 − μ): how far a weight can go
    "noise": 1.3,  # lr/(B·(1 − μ)), with Adam lr/sqrt(B): how noisy the steps are
    "passes": 1.5,  # steps·B/samples
    "steps": 1.25,
    "samples": 1.5,
    "features": 1.5,
    "classes": 1.25,
    "parameters": 2.0,
}
# What another kind adds to the squared distance; in fine-tuning twice as much.
OTHER = {"norms": 1.0, "kind": 1.0, "domain": 3.0, "widened": 2.0, "fits": 2.0}
PLAIN = 25.0  # points between the accuracies of two plain models
# The log odds that a new network fits its training set: a constant, times ln passes, times
# ln(parameters/samples). A logistic regression on the rows (research/advising.py).
FITS = (-6.13, 0.9, 0.53)
UNLIKELY = 0.3  # a chance of fitting below it
_FROZEN = 4.0  # a linear probe beside a network that is trained whole
_PRIOR, _SPREAD = 0.5, 5.0  # weight and spread in points of what is believed before any row
_FINETUNED = 15.0  # spread of ranges in fine-tuning, where gains above ``MOST`` are common
_FACTS = ("samples", "parameters", "domain", "kind", "norms", "fits", "csg", "widened")
_DATA = {"image": "images", "text": "texts", "signal": "signals", "table": "tables"}


@dataclass(frozen=True)
class Facts:
    """What is known of a training before it starts; ``None`` for what is not.

    ``domain`` is "image", "text", "signal" or "table"; ``kind`` "convnet", "transformer", "mlp" or
    "recurrent"; ``norms`` "batch-norms", "layer-norms", "no norms", or "frozen" if the output layer
    alone is trained.
    """

    num_features: int  # M of the output layer
    num_classes: int  # K
    training: Training
    samples: int | None = None
    parameters: int | None = None
    domain: str | None = None
    kind: str | None = None
    norms: str | None = None
    widened: bool = False  # the output layer is wider than the network was made for
    fits: bool | None = None  # whether the plain model will fit its training set, if you know
    csg: float | None = None
    insertable: bool = True  # whether a BatchNorm may be inserted
    normed: bool = False  # one stands there already
    batch: int | None = None  # samples of one forward pass, which a BatchNorm sees
    assumed: tuple[str, ...] = ()  # what was not told, and is taken to be usual; in words

    @property
    def pretrained(self) -> bool:
        return self.training.scenario == "finetune"

    @property
    def passes(self) -> float | None:
        """How often each sample is seen."""
        steps, batch = self.training.steps, self.training.batch_size
        return steps * batch / self.samples if steps and batch and self.samples else None

    @property
    def fit_chance(self) -> float | None:
        """The chance that the plain model fits its training set: told, or estimated if new."""
        if self.fits is not None:
            return float(self.fits)
        if self.pretrained or not (self.passes and self.parameters and self.samples):
            return None
        logs = (1.0, math.log(self.passes), math.log(self.parameters / self.samples))
        odds = math.fsum(factor * log for factor, log in zip(FITS, logs, strict=True))
        return 0.5 + 0.5 * math.tanh(odds / 2)


@dataclass(frozen=True)
class Measured:
    """One training that was run: its facts, the plain model's accuracy, and gains by action."""

    source: str
    network: str
    dataset: str
    facts: Facts
    plain: float
    gains: Mapping[str, float]
    seeds: int = 1

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Measured:
        """A row of the file."""
        training = Training(
            *(row["optimizer"], row["lr"], row["steps"]),
            *(row.get("momentum"), row.get("batch"), row.get("decay")),
            scenario="finetune" if row.get("pretrained") else "scratch",
            tuned=row.get("tuned", False),
        )
        more: dict[str, Any] = {name: row[name] for name in _FACTS if name in row}
        facts = Facts(row["features"], row["classes"], training, **more)
        places = (row["source"], row["network"], row["dataset"])
        return cls(*places, facts, row["plain"], row["gains"], row.get("seeds", 1))


@cache
def measured() -> tuple[Measured, ...]:
    """The trainings that ship with the package."""
    text = Path(__file__).with_name("evidence.json").read_text(encoding="utf-8")
    return tuple(map(Measured.from_row, json.loads(text)["rows"]))


@cache
def coordinates(facts: Facts) -> Mapping[str, float]:
    """The logarithms of what is known of a training, by name."""
    t = facts.training
    sgd = t.family == "sgd"
    longer = 1 / max(t.rest, 0.001) if sgd else 1.0
    found: dict[str, float | None] = {
        "steps": t.steps,
        "samples": facts.samples,
        "features": facts.num_features,
        "classes": facts.num_classes,
        "parameters": facts.parameters,
        "passes": facts.passes,
    }
    if t.lr and t.steps:
        found["travel"] = t.lr * t.steps * longer
    if t.lr and t.batch_size:
        found["noise"] = t.lr * longer / (t.batch_size if sgd else math.sqrt(t.batch_size))
    return {name: math.log(min(value, 1e300)) for name, value in found.items() if value}


def distance(mine: Facts, theirs: Facts) -> float:
    """How far two trainings are apart: the root of the mean square of their coordinates' distances.

    A coordinate that is more than two spreads away counts by itself too. Infinite for another
    family of optimizers, pretrained and new, tuned and untuned rates.
    """
    a, b = mine.training, theirs.training
    if (a.family, mine.pretrained, a.tuned) != (b.family, theirs.pretrained, b.tuned):
        return math.inf
    ours, others = coordinates(mine), coordinates(theirs)
    shared = [name for name in ours if name in others]
    squares = [((ours[name] - others[name]) / SCALES[name]) ** 2 for name in shared]
    total = math.fsum(squares) / max(1, len(squares))
    total += max(0.0, max(squares, default=0.0) - 4) / 2
    for name, more in OTHER.items():
        left, right = getattr(mine, name), getattr(theirs, name)
        if left is not None and right is not None and left != right:
            more = _FROZEN if name == "norms" and "frozen" in (left, right) else more
            total += 2 * more if mine.pretrained else more
    return math.sqrt(total)


@dataclass(frozen=True)
class Expectation:
    """What an action gained in the trainings most like yours, in points over the plain model.

    ``mean`` (each gain at most ``MOST``, drawn towards 0 if little like it was measured) has the
    standard error ``error``; 80 % of gains are expected from ``low`` to ``high``. ``support`` is
    about the number of trainings just like yours. ``rows`` have weights, the heaviest first.
    """

    action: str
    mean: float
    error: float
    median: float
    low: float
    high: float
    support: float
    rows: tuple[tuple[float, Measured], ...] = field(default=(), repr=False)

    @property
    def near(self) -> tuple[Measured, ...]:
        """The trainings that say most of it."""
        return tuple(row for weight, row in self.rows if weight >= 0.5 * self.rows[0][0])

    @property
    def source(self) -> str:
        """From which runs, in words."""
        near = self.near
        paper = sum(row.source == "paper" for row in near)
        origin = (
            "" if not paper else " of the paper" if paper == len(near) else ", some of the paper"
        )
        runs, plain = sum(row.seeds for row in near), [row.plain for row in near]
        ends = "–".join(dict.fromkeys(f"{end:.0f}" for end in (min(plain), max(plain))))
        spread = f"; plain accuracy {ends} %" if max(plain) - min(plain) <= 60 else ""
        return (
            f"{runs} run{'s' * (runs > 1)}{origin}: {_few(row.network for row in near)}; "
            f"{_few(_DATA.get(row.facts.domain or '', 'data') for row in near)}{spread}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The expectation as plain JSON types, with its nearest trainings."""
        numbers = {name: value for name, value in vars(self).items() if name != "rows"}
        names = ("source", "network", "dataset", "plain")
        near = [
            {name: getattr(row, name) for name in names}
            | {"steps": row.facts.training.steps, "gain": row.gains[self.action]}
            for row in self.near[:20]
        ]
        return {**numbers, "from": self.source if self.rows else "", "trainings": near}


def _few(words: Iterable[str]) -> str:
    """The commonest words, at most four."""
    names = [word for word, _ in Counter(words).most_common()]
    return ", ".join(names[:4]) + (" and others" if len(names) > 4 else "")


def weights(facts: Facts, rows: Sequence[Measured]) -> list[tuple[float, Measured]]:
    """How much each training counts, the heaviest first: by likeness, and by the seeds it had.

    The plain model's accuracy is guessed from the nearest trainings; those whose plain accuracy is
    far from the guess count less. A training that will hardly fit its training set learns only from
    those that did not fit theirs: the others gained by more regularization, which costs here.
    """
    if facts.fit_chance is not None and facts.fit_chance < UNLIKELY:
        rows = [row for row in rows if (row.facts.fit_chance or 0.0) < 0.5]
    apart = [(square, row) for row in rows if (square := distance(facts, row.facts) ** 2) < 9]
    closest = [(math.exp(-20 * square), row.plain) for square, row in apart]
    total = math.fsum(weight for weight, _ in closest)
    guess = math.fsum(w * plain for w, plain in closest) / max(total, 1e-300)
    found = []
    for square, row in apart:
        other = min(1.0, total) * ((row.plain - guess) / PLAIN) ** 2
        found.append((math.exp(-(square + other) / 2) * row.seeds / (row.seeds + 1), row))
    return sorted(found, key=lambda pair: -pair[0])


def expect(weighted: Sequence[tuple[float, Measured]], action: str) -> Expectation:
    """What to expect of an action, from trainings with their weights."""
    rows = tuple((w, row) for w, row in weighted if action in row.gains)
    gains = [(w, float(row.gains[action])) for w, row in rows]
    held = [(w, max(-MOST, min(gain, MOST))) for w, gain in gains]
    support = math.fsum(w for w, _ in gains)
    total = support + _PRIOR
    mean = math.fsum(w * gain for w, gain in held) / total
    squares = math.fsum(w * (gain - mean) ** 2 for w, gain in held)
    error = math.sqrt(squares + _PRIOR * (_SPREAD**2 + mean**2)) / total
    spread = _FINETUNED if weighted and weighted[0][1].facts.pretrained else _SPREAD
    believed = [(_PRIOR / 3, side * 1.3 * spread) for side in (-1, 0, 1)]
    shares = ((1 - SHARE) / 2, 0.5, (1 + SHARE) / 2)
    low, median, high = (_quantile([*gains, *believed], share) for share in shares)
    return Expectation(action, mean, error, median, low, high, support, rows)


def _quantile(pairs: Sequence[tuple[float, float]], share: float) -> float:
    """Of weighted values, linear between the middles of their weights."""
    ordered = sorted((value, weight) for weight, value in pairs)
    sums = list(itertools.accumulate(weight for _, weight in ordered))
    middles = [s - weight / 2 for s, (_, weight) in zip(sums, ordered, strict=True)]
    place = share * sums[-1]
    for i, (before, after) in enumerate(itertools.pairwise(middles)):
        if place <= after:
            part = max(0.0, place - before) / (after - before) if after > before else 1.0
            return ordered[i][0] + part * (ordered[i + 1][0] - ordered[i][0])
    return ordered[-1][0]
