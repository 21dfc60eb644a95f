"""A run, described: everything that its result depends on, and nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from tstar.checks import positive, positive_csg, share
from tstar.errors import TstarError, unknown
from tstar.lab.training.config import Config
from tstar.training import SCENARIOS

# Raise this when the training code changes so that the same spec gives another result.
PROTOCOL = 1
_CHOICES = {
    "scenario": SCENARIOS,
    "norm": ("batch", "none"),
    "backbone": ("as-is", "matched", "times-t"),
    "head_init": ("own", "paper"),
}
CONFIG_FIELDS = tuple(item.name for item in fields(Config) if item.name != "device")
# Fields that came later, with what older runs had there: at that value they are no part of the key.
LATER: dict[str, object] = {
    **dict.fromkeys(("trunk_features", "depth", "classes", "train_samples", "csg", "source")),
    **dict.fromkeys(("clip_norm", "metric")),
    **{
        "label_noise": 0.0,
        "backbone": "as-is",
        "data_seed": 0,
        "nesterov": False,
        "beta1": 0.9,
        "beta2": 0.999,
    },
    **{"loss": "cross-entropy", "head_lr": 1.0, "head_init": "own"},
}
# Fields that are no more, with what they were if unused: specs that have them so are read.
GONE = dict.fromkeys(("mixup", "dropout", "ema"), 0.0)
# Fields that may name a part of your own (tstar.lab.own).
OWN = ("dataset", "model", "method", "optimizer", "schedule", "augment", "loss", "metric")
# What an optimizer does not read.
_IGNORED = {"sgd": ("beta1", "beta2"), **dict.fromkeys(("adam", "adamw"), ("momentum", "nesterov"))}
# Where the parts of your own are: field → name → reference.
Places = Mapping[str, Mapping[str, str]]


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


@dataclass(frozen=True)
class Spec:
    """One run of a study.

    Attributes:
        dataset: a data set's name, its path below the data root, or yours: ``f(root, size)``,
            arrays or a ``DataSet``.
        model: a network's name, or yours: ``f(num_classes, …)``, an ``nn.Module``.
        seed: seed of the initial weights, the held-out part and the batches.
        size: resize images to size×size pixels.
        num_features: the width M of the output layer's input; the network's own by default.
        method: ``"fixed"`` for a fixed temperature, a method's name, or yours: ``f(model, facts)``,
            a ``Recipe``.
        temperature: T, if the method is ``"fixed"``.
        norm: ``"batch"`` or ``"none"`` before the output layer, if the method is ``"fixed"``; in a
            study, none by default: the plain network.
        options: the method's options, as JSON.
        teacher_features: M of the teacher, for methods that need one.
        role: ``"teacher"`` for a run whose weights are kept for such methods.
        scenario: ``"scratch"`` or ``"finetune"``.
        weights: for fine-tuning, ``"default"`` (the model library's own) or the path below the data
            root of a state dict.
        backbone: the gradient into the backbone, if the method is ``"fixed"``: ``"as-is"``,
            ``"matched"`` (to the plain model's) or ``"times-t"`` (multiplied by T).
        trunk_features: the width of the network before a last, wider layer of M features; its own
            by default.
        depth: the network's number of blocks; its own by default.
        classes: use only this many classes.
        train_samples: use only this many training samples.
        label_noise: share of the training labels (validation included) that are drawn anew.
        data_seed: seed of what is drawn from the data: classes, samples, noise.
        csg: the data's difficulty, in place of the measured one.
        head_init: the output layer's initial weights: the network's ``"own"``, or ``"paper"`` for
            U(±1/√M), which the networks of this package have anyway.
        source: hash of the files of your own parts, filled in when they are first imported.
        data_checksum: of the arrays, filled in when the data are first read.
        config: every number of the training protocol.
    """

    dataset: str
    model: str
    seed: int = 0
    size: int | None = None
    num_features: int | None = None
    method: str = "fixed"
    temperature: float | None = None
    norm: str | None = None
    options: str = "{}"
    teacher_features: int | None = None
    role: str = "run"
    scenario: str = "scratch"
    weights: str | None = None
    backbone: str = "as-is"
    trunk_features: int | None = None
    depth: int | None = None
    classes: int | None = None
    train_samples: int | None = None
    label_noise: float = 0.0
    data_seed: int = 0
    csg: float | None = None
    head_init: str = "own"
    source: str | None = None
    data_checksum: str | None = None
    config: Config = field(default_factory=Config)

    def __post_init__(self) -> None:
        fixed = self.method == "fixed"
        if {self.temperature is not None, self.norm is not None} != {fixed}:
            raise TstarError(
                'temperature and norm belong to method = "fixed", which needs both, got method = '
                f"{self.method!r}; put other methods into a [[grid]] of their own."
            )
        if not fixed and self.backbone != "as-is":
            raise TstarError('backbone belongs to method = "fixed"; leave it out.')
        for name, known in _CHOICES.items():
            if (value := getattr(self, name)) is not None and value not in known:
                raise unknown(name, value, known)
        if fixed:
            positive("temperature", self.temperature)
        share("label_noise", self.label_noise)
        if self.csg is not None:
            positive_csg(self.csg)
        if (self.weights is not None) != (self.scenario == "finetune"):
            raise TstarError(
                'weights must be given for scenario = "finetune" and no other ("default": the '
                f"library's own), got scenario = {self.scenario!r} and weights = {self.weights!r}."
            )

    @property
    def key(self) -> str:
        """The name of the run in the store: a hash of the full spec."""
        content = self.to_dict() | {"protocol": PROTOCOL}
        if self.config.steps is not None:
            del content["epochs"]  # the number of steps overrides it
        for name in _IGNORED.get(self.config.optimizer, ()):
            del content[name]
        for name, default in LATER.items():
            if name in content and content[name] == default:
                del content[name]
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def to_dict(self) -> dict[str, Any]:
        """The spec as plain JSON types, flat, without the device."""
        mine = asdict(self)
        config = mine.pop("config")
        return mine | {name: config[name] for name in CONFIG_FIELDS}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Spec:
        mine = {n: v for n, v in content.items() if n not in GONE or v != GONE[n]}
        config = {name: mine.pop(name) for name in CONFIG_FIELDS if name in content}
        return cls(config=Config(**config), **mine)

    def resolved(self, places: Places) -> Spec:
        """The spec with its own parts named so that any process of this machine finds them."""
        content = self.to_dict()
        for name, known in places.items():
            content[name] = known.get(content[name], content[name])
        return Spec.from_dict(content) if places else self

    def teacher(self) -> Spec:
        """The run that trains this one's teacher: the same architecture, M its own, at T = 1."""
        if self.teacher_features is None:
            raise TstarError(f"teacher_features, its M, must be given for method {self.method!r}.")
        return replace(
            self,
            config=replace(self.config, label_smoothing=0.0),
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
        return f"{self.dataset} {self.model}{width} {how} lr={self.config.lr:g} seed={self.seed}"


# Every field of a run, flat, with its type: "str", "int", "float" or "bool".
KINDS = {
    item.name: str(item.type).partition(" ")[0]
    for item in (*fields(Spec), *fields(Config))
    if item.name not in ("config", "device")
}
