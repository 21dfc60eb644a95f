"""A run, described: what its result depends on and nothing else, and what a store says of it.

``FIELDS`` and ``TABLE`` are the one table of names, types and meanings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, replace
from functools import cached_property, partial
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from tstar.errors import TstarError, positive, share, whole
from tstar.lab.training.config import Config
from tstar.training import described

# Raise this when the training code or a default changes so that a spec gives another result.
PROTOCOL = 1
# What an optimizer does not read.
_IGNORED = {"sgd": ("beta1", "beta2"), **dict.fromkeys(("adam", "adamw"), ("momentum", "nesterov"))}
# Where the parts of your own are: field → name → reference.
Places = Mapping[str, Mapping[str, str]]
_MOST = 2**31 - 1  # of whole numbers, seeds among them
_count, _seed = (partial(whole, least=least, most=_MOST) for least in (1, 0))


def is_absolute(path: str) -> bool:
    """On this system or on another."""
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def check_below_root(field: str, value: str) -> None:
    """Refuse a machine's own path: a study must mean the same on every machine."""
    if is_absolute(value) or ".." in PurePosixPath(value).parts:
        raise TstarError(
            f"{field} must be a name or a path below the data root, got {value!r}; "
            "give the folder with --data-root or TSTAR_DATA."
        )


@dataclass(frozen=True, kw_only=True)
class Spec(Config):
    """One run of a study: what is trained, and how.

    Fields that are not ``condition`` tell the runs of one condition apart; those with
    ``study=False`` are filled in. A label that is not given is the name.
    """

    dataset: str = described(
        "a data set's name, its path below the data root, or yours: f(root, size), arrays or a "
        "DataSet",
        MISSING,
        label="data",
        own=True,
    )
    size: int | None = described("resize images to size×size pixels", unit="px", check=_count)
    classes: int | None = described(
        "use only this many classes", label="classes drawn", check=_count
    )
    label_noise: float = described(
        "share of the training labels (those held out included) that are drawn anew",
        0.0,
        check=share,
    )
    data_seed: int = described(
        "seed of what is drawn from the data: classes, samples, noise", 0, check=_seed
    )
    model: str = described(
        "a network's name, or yours: f(num_classes, …), an nn.Module", MISSING, own=True
    )
    num_features: int | None = described(
        "the width M of the output layer's input; the network's own by default",
        label="M",
        check=_count,
    )
    trunk_features: int | None = described(
        "the width of the network before a last, wider layer of M features; its own by default",
        label="trunk",
        check=_count,
    )
    depth: int | None = described(
        "the network's number of blocks; its own by default", check=_count
    )
    weights: str | None = described(
        'for fine-tuning, "default" (the model library\'s own) or the path below the data root of '
        "a state dict"
    )
    head_init: str = described(
        'the output layer\'s initial weights: the network\'s "own", or "paper" for U(±1/√M), which '
        "the networks of this package have anyway",
        "own",
        choices=("own", "paper"),
    )
    method: str = described(
        '"fixed" for a fixed temperature, a method\'s name, or yours: f(model, setting), a Recipe',
        "fixed",
        own=True,
        condition=False,
    )
    options: str = described("the method's options, as JSON", "{}", condition=False, study=False)
    temperature: float | None = described(
        'T, if the method is "fixed"', label="T", check=positive, condition=False
    )
    norm: str | None = described(
        '"batch" or "none" before the output layer, if the method is "fixed"; in a study, none by '
        "default: the plain network",
        choices=("batch", "none"),
        condition=False,
    )
    teacher_features: int | None = described(
        "M of the teacher, for methods that need one",
        label="teacher's M",
        check=_count,
        condition=False,
    )
    csg: float | None = described(
        "the data's difficulty, in place of the measured one", check=positive, condition=False
    )
    seed: int = described(
        "seed of the initial weights, the held-out part and the batches",
        0,
        check=_seed,
        condition=False,
    )
    role: str = described(
        '"teacher" for a run whose weights are kept for such methods',
        "run",
        condition=False,
        study=False,
    )
    source: str | None = described(
        "hash of the files of your own parts, filled in when they are first imported", study=False
    )
    data_checksum: str | None = described(
        "of the arrays, filled in when the data are first read",
        condition=False,
        study=False,
        listed=False,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        fixed = self.method == "fixed"
        if {self.temperature is not None, self.norm is not None} != {fixed}:
            raise TstarError(
                'temperature and norm belong to method = "fixed", which needs both, got method = '
                f"{self.method!r}; put other methods into a [[grid]] of their own."
            )
        if (self.weights is not None) != (self.scenario == "finetune"):
            raise TstarError(
                'weights must be given for scenario = "finetune" and no other ("default": the '
                f"library's own), got scenario = {self.scenario!r} and weights = {self.weights!r}."
            )

    @cached_property
    def key(self) -> str:
        """The name of the run in the store: a hash of what differs from the defaults.

        A field that is added later changes no key; what the optimizer does not read, and epochs
        that steps override, are no part of it.
        """
        unread = {*_IGNORED.get(self.optimizer, ()), *(["epochs"] if self.steps else [])}
        content = {
            name: value
            for name, value in self.to_dict().items()
            if name not in unread and value != FIELDS[name].default
        }
        if self.label_noise:  # once drawn with the numbers that chose the held-out part
            content["label_noise"] = [self.label_noise, 2]
        text = json.dumps(content | {"protocol": PROTOCOL}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def resolved(self, places: Places) -> Spec:
        """The spec with its own parts named so that any process of this machine finds them."""
        places_of = {n: known.get(getattr(self, n)) for n, known in places.items()}
        changes: dict[str, Any] = {name: place for name, place in places_of.items() if place}
        return replace(self, **changes) if changes else self

    def teacher(self) -> Spec:
        """The run that trains this one's teacher: the same architecture, M its own, at T = 1."""
        if self.teacher_features is None:
            raise TstarError(f"teacher_features, its M, must be given for method {self.method!r}.")
        return replace(
            self,
            label_smoothing=0.0,
            num_features=self.teacher_features,
            method="fixed",
            temperature=1.0,
            norm="none",
            options="{}",
            teacher_features=None,
            role="teacher",
        )

    def __str__(self) -> str:
        width = "" if self.num_features is None else f" M={self.num_features}"
        how = f"T={self.temperature:g} norm={self.norm}" if self.method == "fixed" else self.method
        return f"{self.dataset} {self.model}{width} {how} lr={self.lr:g} seed={self.seed}"


def kind_of(item: Field[Any]) -> str:
    """``"str"``, ``"int"``, ``"float"`` or ``"bool"``: the type of a field, or its first."""
    return str(item.type).partition(" ")[0]


# Every field of a run, what is trained first: the one table of names, types and meanings.
_CONFIG = [item.name for item in fields(Config)]
FIELDS: dict[str, Field[Any]] = {
    item.name: item
    for item in sorted(fields(Spec), key=lambda item: item.name in _CONFIG)
    if item.name != "device"
}
STUDY = tuple(n for n, item in FIELDS.items() if item.metadata.get("study", True))
OWN = tuple(n for n, item in FIELDS.items() if item.metadata.get("own"))


# -- the columns of a store ------------------------------------------------------------------------
FINAL = ("done", "diverged")
STATUSES = (*FINAL, "failed")


@dataclass(frozen=True)
class StoredRun:
    """What a row of a store has besides the fields of its spec.

    In a row M, T, norm, samples, epochs and steps are as trained; ``spec`` has what was asked.
    Accuracies are shares after the last epoch.
    """

    key: str = described("the name of the run: a hash of its spec", "", listed=True)
    status: str = described("done, diverged or failed", "", listed=True)
    attempts: int = described("how often it was tried", 1)
    num_classes: int | None = described("K, the number of classes", label="K", condition=True)
    domain: str | None = described("image, signal, vector or text")
    teacher: str | None = described("the key of its teacher")
    spec: str | None = described("what was asked, as JSON", json=True)
    studies: str | None = described(
        "that ask for it, as JSON: name → hash, null if it asks no longer", json=True
    )
    val_accuracy: float | None = described("on the part held out", label="val %", listed=True)
    test_accuracy: float | None = described("on the test part", label="test %", listed=True)
    train_accuracy: float | None = described("on the last epoch's batches", label="train %")
    train_loss: float | None = described("on the last epoch's batches")
    val_loss: float | None = described("on the part held out")
    nll: float | None = described("mean −log p of the true class, test part", label="NLL")
    ece: float | None = described("expected calibration error, test part", label="ECE")
    val_metric: float | None = described("a metric of your own", listed=True)
    test_metric: float | None = described("a metric of your own", listed=True)
    seconds: float | None = described("of the training", label="time", listed=True)
    images_per_second: float | None = described("samples trained on")
    trainings: int | None = described("that it took, with a search's and a teacher's")
    curves: str | None = described("quantity → one number per epoch, as JSON", json=True)
    extra: str | None = described("what the method recorded, as JSON", json=True)
    versions: str | None = described("what it was made with, as JSON", json=True)
    commit: str | None = described("of the code")
    error: str | None = described("why it failed")
    host: str | None = described("where it was trained")
    started: float | None = described("seconds since 1970")
    finished: float | None = described("seconds since 1970", label="ended", listed=True)


# Every column, in the order of a row.
_OWN = {item.name: item for item in fields(StoredRun)}
_FIRST = ("key", "status", "attempts")
TABLE: dict[str, Field[Any]] = {name: _OWN[name] for name in _FIRST} | FIELDS | _OWN
LABELS = {name: item.metadata["label"] or name.replace("_", " ") for name, item in TABLE.items()}
_SQL = {"str": "TEXT", "int": "INTEGER", "bool": "INTEGER", "float": "REAL"}
_RULES = {
    "key": "TEXT PRIMARY KEY",
    "status": "TEXT NOT NULL CHECK (status IN ('done', 'diverged', 'failed'))",
    "attempts": "INTEGER NOT NULL",
}
COLUMNS = {name: _RULES.get(name, _SQL[kind_of(item)]) for name, item in TABLE.items()}
SCORES = ("val_accuracy", "test_accuracy", "train_accuracy", "train_loss", "val_loss", "nll", "ece")
WRITTEN = ("curves", "extra", "versions")  # JSON that the store itself writes
OPENED = ("options", *(name for name, item in TABLE.items() if item.metadata.get("json")))
# 0, 1, or the name of a part of your own: SQLite keeps text in a column of numbers as text.
MIXED = tuple(name for name, item in TABLE.items() if "bool | str" in str(item.type))


def own_scores(extra: Mapping[str, Any]) -> dict[str, float]:
    """The values of a metric of your own, among what a run recorded."""
    found = {"val_metric": extra.get("val_metric"), "test_metric": extra.get("metric")}
    return {name: value for name, value in found.items() if isinstance(value, int | float)}


def read_cell(cell: Any) -> Any:
    """What a cell of JSON describes; one that is damaged stays as it is."""
    try:
        return json.loads(cell) if isinstance(cell, str) else cell
    except (ValueError, RecursionError):
        return cell


def json_object(text: object) -> dict[str, Any]:
    """What a cell of JSON describes; empty if it describes no object."""
    content = read_cell(text)
    return content if isinstance(content, dict) else {}


def opened(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its JSON columns as what they describe."""
    return {name: read_cell(cell) if name in OPENED else cell for name, cell in row.items()}
