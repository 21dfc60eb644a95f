"""A run, described: everything that its result depends on, and nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from tstar.errors import TstarError, unknown
from tstar.numbers import positive, share
from tstar.training.config import Config

# Raise this when the training code changes so that the same spec gives another result.
PROTOCOL = 1
NORMS = ("batch", "none")
BACKBONES = ("as-is", "matched", "times-t")
SCENARIOS = ("scratch", "finetune")
CONFIG_FIELDS = tuple(item.name for item in fields(Config) if item.name != "device")
_LATER: dict[str, object] = {
    "backbone": "as-is",
    "trunk_features": None,
    "depth": None,
    "classes": None,
    "train_samples": None,
    "label_noise": 0.0,
    "data_seed": 0,
}


def outside_root(field: str, value: str) -> str | None:
    """What is wrong with a machine's own path: a study must mean the same on every machine."""
    absolute = PurePosixPath(value).is_absolute() or PureWindowsPath(value).is_absolute()
    if not absolute and ".." not in PurePosixPath(value).parts:
        return None
    return (
        f"{field} must be a name or a path below the data root, got {value!r}; "
        "give the folder with --data-root or TSTAR_DATA."
    )


@dataclass(frozen=True)
class Spec:
    """One run of a study.

    Attributes:
        dataset: a data set's name, or its path below the data root. ``size``: pixels, or ``None``.
        model: a model's name; ``num_features`` is the M asked for, ``None`` for the model's own.
        method: ``"fixed"`` for a fixed temperature, or a method's name, with its ``options``.
        temperature, norm: T and ``"batch"`` or ``"none"``, of a fixed temperature only.
        teacher_features: M of the teacher, for methods that need one. ``role``: ``"teacher"`` for a
            run whose weights are kept for such methods.
        backbone: how loudly the backbone hears the loss (:class:`tstar.methods.fixed.Fixed`), of a fixed temperature.
        trunk_features: the width of the network before a last, wider layer of M features; ``depth``: its number of
            blocks. ``None`` for the network's own.
        classes: a subset of so many classes; ``train_samples``: of so many training samples; ``label_noise``: the share
            of training labels (validation included) that are drawn anew. ``data_seed`` seeds the three.
        scenario: ``"scratch"`` or ``"finetune"``; ``weights``: for fine-tuning, ``"default"`` (the
            model library's own) or the path below the data root of a state dict.
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
    data_checksum: str | None = None
    config: Config = field(default_factory=Config)

    def __post_init__(self) -> None:
        if self.scenario not in SCENARIOS:
            raise unknown("scenario", self.scenario, SCENARIOS)
        if self.method == "fixed":
            if self.temperature is None or self.norm is None:
                raise TstarError(
                    "temperature and norm must be given for a fixed temperature; "
                    "or choose a method by its name."
                )
            if self.norm not in NORMS:
                raise unknown("norm", self.norm, NORMS)
            positive("temperature", self.temperature)
        elif self.temperature is not None or self.norm is not None:
            raise TstarError(
                f'temperature and norm belong to method = "fixed", got method = {self.method!r}; '
                "leave them out, or put the method into a [[grid]] of its own."
            )
        if self.backbone not in BACKBONES:
            raise unknown("backbone", self.backbone, BACKBONES)
        if self.method != "fixed" and self.backbone != "as-is":
            raise TstarError('backbone belongs to method = "fixed"; leave it out.')
        share("label_noise", self.label_noise)
        if (self.weights is not None) != (self.scenario == "finetune"):
            raise TstarError(
                'weights must be given for scenario = "finetune" and for no other ("default" for the '
                f"model library's own), got scenario = {self.scenario!r} and weights = {self.weights!r}."
            )

    @property
    def key(self) -> str:
        """The name of the run in the store: a hash of the full spec."""
        content = self.to_dict() | {"protocol": PROTOCOL}
        if self.config.steps is not None:
            del content["epochs"]  # the number of steps overrides it
        if self.config.optimizer != "sgd":
            del content["momentum"]
        # Fields that came later leave the keys of older runs as they were.
        for name, default in _LATER.items():
            if content[name] == default:
                del content[name]
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def to_dict(self) -> dict[str, Any]:
        """The spec as plain JSON types, flat, without where it runs."""
        mine = asdict(self)
        config = mine.pop("config")
        return mine | {name: config[name] for name in CONFIG_FIELDS}

    @classmethod
    def from_dict(cls, content: dict[str, Any], *, device: str = "cpu") -> Spec:
        own = {name: value for name, value in content.items() if name not in CONFIG_FIELDS}
        config = {name: value for name, value in content.items() if name in CONFIG_FIELDS}
        return cls(config=Config(**config, device=device), **own)

    def teacher(self) -> Spec:
        """The run that trains this one's teacher: the same architecture, M its own, at T = 1."""
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
