"""Every number of the training protocol, with the paper's values as defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial

from tstar.checks import positive, share, whole
from tstar.errors import TstarError, unknown
from tstar.lab.own import is_reference

OPTIMIZERS = ("sgd", "adam", "adamw")
SCHEDULES = ("cosine", "linear", "constant", "one-cycle")
# The names that are known, besides those of your own parts.
_CHOICES: dict[str, tuple[str, ...]] = {
    **{"optimizer": OPTIMIZERS, "schedule": SCHEDULES, "loss": ("cross-entropy",)},
    **{"metric": (), "augment": ()},
}
_SHARES = ("momentum", "beta1", "beta2", "warmup", "label_smoothing", "val_fraction")
_NUMBERS: dict[str, Callable[[str, object], float]] = {
    "epochs": partial(whole, least=1),
    "steps": partial(whole, least=1),
    "batch_size": partial(whole, least=2),
    "lr": positive,
    "head_lr": positive,
    **dict.fromkeys(_SHARES, share),
    "weight_decay": partial(positive, zero=True),
    "clip_norm": positive,
    "padding": partial(whole, least=0),
    "rotation": partial(positive, zero=True, most=180),
}


@dataclass(frozen=True)
class Config:
    """How to train. The defaults are the paper's, except ``val_fraction`` (theirs is 0).

    optimizer, schedule, augment, loss and metric may be your own (:mod:`tstar.lab.own`).

    Attributes:
        epochs: passes over the training part.
        steps: optimizer steps in all, in place of ``epochs`` if given.
        batch_size: samples per step. A last batch of one sample is left out, for BatchNorm.
        optimizer: ``"sgd"``, ``"adam"``, ``"adamw"``, or yours: ``f(parameters, lr=…, …)``.
        lr: the highest learning rate.
        head_lr: times the rate for the output layer.
        momentum: momentum of SGD.
        nesterov: Nesterov's momentum, for SGD.
        beta1: β₁ of Adam and AdamW.
        beta2: β₂ of Adam and AdamW.
        weight_decay: on every parameter, as in the paper.
        clip_norm: clip the gradient to this norm, over all parameters together.
        schedule: ``"cosine"`` or ``"linear"`` to 0, ``"constant"``, ``"one-cycle"``, or yours:
            ``f(step, steps)``, a factor on lr.
        warmup: share of the steps over which the learning rate rises linearly from 0 first.
        loss: ``"cross-entropy"``, or yours: ``f(logits, targets)``, the mean over the batch.
        label_smoothing: ε of y' = (1 − ε)·y + ε/K.
        metric: yours: ``f(logits, targets)``, a number, recorded for validation and test part.
        val_fraction: share of the training set held out, stratified and seeded; 0 for the paper's.
        augment: true, false, or yours: ``f(batch, generator)``, of standardized batches.
        padding: random crops after padding by so many pixels; an eighth of the width by default.
        flip: random horizontal flips; by default if a mirrored image is of the same class.
        rotation: random rotations up to so many degrees.
        test_curve: measure test accuracy after every epoch and not only the last.
        amp: bfloat16 autocast.
        compile: ``torch.compile``.
        device: ``"cpu"``, ``"cuda"``, ``"mps"``, …, or ``"auto"`` for the best one present.
    """

    epochs: int = 200
    steps: int | None = None
    batch_size: int = 128
    optimizer: str = "sgd"
    lr: float = 0.1
    head_lr: float = 1.0
    momentum: float = 0.9
    nesterov: bool = False
    beta1: float = 0.9
    beta2: float = 0.999
    weight_decay: float = 5e-4
    clip_norm: float | None = None
    schedule: str = "cosine"
    warmup: float = 0.0
    loss: str = "cross-entropy"
    label_smoothing: float = 0.0
    metric: str | None = None
    val_fraction: float = 0.1
    augment: bool | str = True
    padding: int | None = None
    flip: bool | None = None
    rotation: float = 15.0
    test_curve: bool = False
    amp: bool = False
    compile: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        for item in fields(self):
            value, kinds = getattr(self, item.name), str(item.type).split(" | ")
            if value is None and "None" in kinds:
                continue
            if item.name in _NUMBERS:  # a whole number may stand for a float
                object.__setattr__(self, item.name, _NUMBERS[item.name](item.name, value))
            elif type(value).__name__ not in kinds:
                what = "true or false" if kinds[0] == "bool" else "a string"
                raise TstarError(f"{item.name} must be {what}, got {item.name}={value!r}.")
        for name, known in _CHOICES.items():
            value = getattr(self, name)
            if isinstance(value, str) and value not in known and not is_reference(value):
                raise TstarError(
                    f"{unknown(name, value, known)} Your own is given as package.module:name or "
                    "./file.py:name."
                )
