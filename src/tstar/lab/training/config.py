"""How a run is trained: a Training with the paper's values, and every number of the protocol."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from tstar.errors import TstarError, positive, share, shown, unknown, whole
from tstar.lab.own import is_reference
from tstar.training import SCENARIOS, Training, described, with_default

OPTIMIZERS = ("sgd", "adam", "adamw")
SCHEDULES = ("cosine", "linear", "constant", "one-cycle")
_count, _size = partial(whole, least=1), partial(positive, zero=True)


@dataclass(frozen=True)
class Config(Training):
    """How to train. The defaults are the paper's, except ``val_fraction`` (theirs is 0).

    ``docs/study.md`` lists every field. One with ``choices`` takes these names; one with ``own``
    may also name a part of your own (:mod:`tstar.lab.own`).
    """

    optimizer: str = with_default(
        "optimizer",
        "sgd",
        meaning='"sgd", "adam", "adamw", or yours: f(parameters, lr=…, …)',
        choices=OPTIMIZERS,
        own=True,
    )
    lr: float = with_default("lr", 0.1)
    momentum: float = with_default("momentum", 0.9)
    weight_decay: float = with_default(
        "weight_decay", 5e-4, meaning="weight decay, on every parameter as in the paper"
    )
    batch_size: int = with_default(
        "batch_size",
        128,
        meaning="samples per step; a last batch of one sample is left out, for BatchNorm",
        check=partial(whole, least=2),
    )
    steps: int | None = with_default(
        "steps", None, meaning="optimizer steps in all, in place of epochs if given"
    )
    epochs: int = with_default("epochs", 200, check=_count)
    samples: int | None = with_default(
        "samples",
        None,
        meaning="training samples, with those held out; a study draws so many, by default all",
    )
    schedule: str = with_default(
        "schedule",
        "cosine",
        meaning='"cosine" or "linear" to 0, "constant", "one-cycle", or yours: f(step, steps), '
        "a factor on lr",
        choices=SCHEDULES,
        own=True,
    )
    scenario: str = with_default("scenario", "scratch", choices=SCENARIOS)
    tuned: bool = with_default("tuned", False, condition=False)  # the advice alone reads it
    head_lr: float = described("times the rate for the output layer", 1.0, check=positive)
    nesterov: bool = described("Nesterov's momentum, for SGD", False)
    beta1: float = described("β₁ of Adam and AdamW", 0.9, label="β₁", check=share)
    beta2: float = described("β₂ of Adam and AdamW", 0.999, label="β₂", check=share)
    clip_norm: float | None = described(
        "clip the gradient to this norm, over all parameters together", check=positive
    )
    warmup: float = described(
        "share of the steps over which the learning rate rises linearly from 0 first",
        0.0,
        check=share,
    )
    loss: str = described(
        '"cross-entropy", or yours: f(logits, targets), the mean over the batch',
        "cross-entropy",
        choices=("cross-entropy",),
        own=True,
    )
    metric: str | None = described(
        "yours: f(logits, targets), a number, recorded for validation and test part",
        choices=(),
        own=True,
        condition=False,
    )
    val_fraction: float = described(
        "share of the training set held out, stratified and seeded; 0 for the paper's",
        0.1,
        label="held out",
        check=share,
    )
    augment: bool | str = described(
        "true, false, or yours: f(batch, generator), of standardized batches",
        True,
        choices=(),
        own=True,
    )
    padding: int | None = described(
        "random crops after padding by so many pixels; an eighth of the width by default",
        check=partial(whole, least=0),
    )
    flip: bool | None = described(
        "random horizontal flips; by default if a mirrored image is of the same class"
    )
    rotation: float = described(
        "random rotations up to so many degrees", 15.0, check=partial(_size, most=180)
    )
    test_curve: bool = described(
        "measure test accuracy after every epoch and not only the last", False, condition=False
    )
    amp: bool = described("bfloat16 autocast", False, label="bfloat16")
    compile: bool = described("torch.compile", False, condition=False)
    device: str = described(
        '"cpu", "cuda", "mps", …, or "auto" for the best one present', "cpu", condition=False
    )

    def __post_init__(self) -> None:
        for item in fields(self):
            check_kind(item, getattr(self, item.name))
        super().__post_init__()

    def to_dict(self) -> dict[str, Any]:
        """What is known, as plain JSON types, without the device: it changes no result."""
        return {name: value for name, value in super().to_dict().items() if name != "device"}


def check_kind(item: Any, value: object) -> None:
    """Refuse a value of another kind, or a name that is neither known nor of a part of your own."""
    kinds, choices = str(item.type).split(" | "), item.metadata.get("choices")
    if value is None and "None" in kinds:
        return
    if value is None or (kinds[0] in ("bool", "str") and type(value).__name__ not in kinds):
        what = {"bool": "true or false", "str": "a string"}.get(kinds[0], "a number")
        raise TstarError(f"{item.name} must be {what}, got {item.name}={shown(value)}.")
    if choices is None or not isinstance(value, str) or value in choices:
        return
    if not item.metadata.get("own"):
        raise unknown(item.name, value, choices)
    if not is_reference(value):
        raise TstarError(
            f"{unknown(item.name, value, choices)} Your own is given as package.module:name or "
            "./file.py:name."
        )
