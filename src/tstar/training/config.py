"""Every number of the training protocol, with the paper's values as defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from tstar.errors import TstarError, unknown

OPTIMIZERS = ("sgd", "adam", "adamw")
SCHEDULES = ("cosine", "linear", "constant", "one-cycle")


@dataclass(frozen=True)
class Config:
    """How to train. The defaults are the paper's, except ``val_fraction`` (the paper holds out none).

    Attributes:
        epochs: passes over the training part.
        steps: optimiser steps in all, in place of ``epochs`` where given.
        batch_size: samples a step. A last batch of one sample is left out: BatchNorm cannot use it.
        optimizer: ``"sgd"``, ``"adam"`` or ``"adamw"``.
        lr: the highest learning rate.
        momentum: of SGD; for Adam and AdamW β₁ stays at 0.9.
        weight_decay: on every parameter, as in the paper.
        schedule: ``"cosine"`` or ``"linear"`` to 0, ``"constant"``, or ``"one-cycle"``, stepped at every batch.
        warmup: share of the steps over which the learning rate rises linearly from 0 first.
        label_smoothing: ε of y' = (1 − ε)·y + ε/K.
        val_fraction: share of the training set held out, stratified and seeded; 0 for the paper's.
        augment: switch for all augmentation; signals and vectors have no further fields.
        padding: random crops after padding by so many pixels; an eighth of the width by default.
        flip: random horizontal flips; by default where a mirrored image is of the same class.
        rotation: random rotations up to so many degrees.
        test_curve: measure test accuracy after every epoch and not only the last.
        amp: bfloat16 autocast. compile: ``torch.compile``.
        device: ``"cpu"``, ``"cuda"``, ``"mps"``, …, or ``"auto"`` for the best one present.
    """

    epochs: int = 200
    steps: int | None = None
    batch_size: int = 128
    optimizer: str = "sgd"
    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: str = "cosine"
    warmup: float = 0.0
    label_smoothing: float = 0.0
    val_fraction: float = 0.1
    augment: bool = True
    padding: int | None = None
    flip: bool | None = None
    rotation: float = 15.0
    test_curve: bool = False
    amp: bool = False
    compile: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(
                self, item.name, _typed(item.name, str(item.type), getattr(self, item.name))
            )
        if self.optimizer not in OPTIMIZERS:
            raise unknown("optimizer", self.optimizer, OPTIMIZERS)
        if self.schedule not in SCHEDULES:
            raise unknown("schedule", self.schedule, SCHEDULES)
        _need("epochs >= 1", self.epochs >= 1, self.epochs)
        _need("steps >= 1", self.steps is None or self.steps >= 1, self.steps)
        _need("batch_size >= 2", self.batch_size >= 2, self.batch_size)
        _need("lr > 0", self.lr > 0, self.lr)
        _need("0 <= momentum < 1", 0 <= self.momentum < 1, self.momentum)
        _need("weight_decay >= 0", self.weight_decay >= 0, self.weight_decay)
        _need("0 <= warmup < 1", 0 <= self.warmup < 1, self.warmup)
        _need("0 <= label_smoothing < 1", 0 <= self.label_smoothing < 1, self.label_smoothing)
        _need("0 <= val_fraction < 1", 0 <= self.val_fraction < 1, self.val_fraction)
        _need("padding >= 0", self.padding is None or self.padding >= 0, self.padding)
        _need("0 <= rotation <= 180", 0 <= self.rotation <= 180, self.rotation)


def _typed(name: str, kind: str, value: object) -> object:
    """``value`` as the field's type (a whole number may stand for a float), or an error."""
    if value is None and "None" in kind:
        return None
    wanted = kind.partition(" ")[0]
    if wanted == "float" and isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise TstarError(f"{name} must be finite, got {name}={value!r}.")
        return float(value)
    exact = {"int": int, "bool": bool, "str": str}.get(wanted)
    if exact is not None and type(value) is exact:
        return value
    what = {"int": "a whole number", "float": "a number", "bool": "true or false"}
    raise TstarError(f"{name} must be {what.get(wanted, 'a string')}, got {name}={value!r}.")


def _need(condition: str, holds: bool, got: object) -> None:
    if not holds:
        raise TstarError(f"{condition} must hold, but got {got!r}.")
