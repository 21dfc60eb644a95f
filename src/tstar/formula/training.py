"""How one trains, as one record: made once, from keywords or from a torch optimizer, and passed whole.

Pure Python: torch's objects are read by what they offer (:mod:`tstar.formula.reading`), torch is never imported.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypedDict

from tstar.errors import TstarError, shown, unknown
from tstar.formula import reading
from tstar.numbers import positive, share, whole

Family = Literal["sgd", "adam", "scale-free", "other"]
SCENARIOS = ("scratch", "finetune")

MOMENTUM = 0.9  # of the runs that the law was measured on
# The mean rate over the highest, of a schedule that falls to zero as cosine or linear.
RATE_FACTOR = 0.5

# What the names of optimizers in torch, timm, transformers, DeepSpeed and bitsandbytes come down to. The steps of
# "scale-free" optimizers do not see the gradient's scale, as Adam's do not; T was not measured for them.
_FAMILIES: Mapping[Family, tuple[str, ...]] = {
    "sgd": ("sgd", "sgdw"),
    "adam": ("adam", "adamw", "nadam", "nadamw", "radam", "adamp"),
    "scale-free": (
        *("lion", "lamb", "lars", "adafactor", "rmsprop", "muon", "adagrad", "adadelta", "adamax", "rprop"),
        *("adabelief", "sophia", "prodigy", "novograd", "adan", "ademamix", "soap", "shampoo", "signsgd"),
    ),
    "other": ("asgd", "lbfgs", "sparseadam", "lomo", "adalomo"),
}  # fmt: skip
# What these make of Adam or SGD was not measured.
_OTHERS = ("galore", "apollo", "grok", "schedulefree")
# Words in a name that say how it is computed, not what: adamw_torch_fused, paged_adamw_8bit, DeepSpeedCPUAdam.
_HOW = ("torch", "tpu", "npu", "xla", "apex", "anyprecision", "hf", "bnb", "fused", "paged", "8bit", "32bit", "4bit",
        "deepspeed", "cpu", "tf", "legacy", "fabric", "stable", "layerwise")  # fmt: skip
SCHEDULES = {
    "constant": 1.0,
    "constant_with_warmup": 1.0,
    "none": 1.0,
    "cosine": 0.5,
    "linear": 0.5,
    "one-cycle": 0.506,  # 0.3·(1/25 + 1)/2 + 0.7·(1 + 1/250,000)/2: torch's OneCycleLR
}


class Keywords(TypedDict, total=False):
    """What ``temperature``, ``explain`` and ``recommend`` can be told about the training; see :meth:`Training.of`."""

    optimizer: Any
    lr: float | None
    momentum: float | None
    steps: int | None
    epochs: float | None
    samples: int | None
    batch_size: int | None
    weight_decay: float | None
    scheduler: Any
    label_smoothing: float
    scenario: str | None
    tuned: bool


@dataclass(frozen=True)
class Training:
    """How one trains, as far as it is known; ``None`` where it was not told.

    Args:
        optimizer: its name in lower case.
        lr: the highest learning rate.
        steps: the number of optimizer steps.
        momentum: of SGD.
        rate_factor: the mean learning rate over the highest: 1 for a constant rate, 0.5 for cosine to zero.
        batch_size: samples per step.
        weight_decay: of the optimizer.
        schedule: the name of the learning-rate schedule.
        label_smoothing: of the loss.
        scenario: ``"scratch"`` or ``"finetune"``.
        tuned: learning rate and weight decay were tuned for the plain model.
    """

    optimizer: str | None = None
    lr: float | None = None
    steps: int | None = None
    momentum: float | None = None
    rate_factor: float | None = None
    batch_size: int | None = None
    weight_decay: float | None = None
    schedule: str | None = None
    label_smoothing: float = 0.0
    scenario: str | None = None
    tuned: bool = False

    def __post_init__(self) -> None:
        def put(name: str, check: Any, **limits: Any) -> None:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, check(name, value, **limits))

        put("lr", positive)
        put("momentum", share)
        put("rate_factor", positive)
        put("steps", whole, least=1)
        put("batch_size", whole, least=1)
        put("weight_decay", positive, zero=True)
        put("label_smoothing", share)
        if not isinstance(self.tuned, bool):
            raise TstarError(f"tuned must be True or False, got {shown(self.tuned)}.")
        if not isinstance(self.scenario, str | None) or self.scenario not in (None, *SCENARIOS):
            raise unknown("scenario", self.scenario, SCENARIOS)

    @classmethod
    def of(
        cls,
        optimizer: Any = None,
        *,
        lr: float | None = None,
        momentum: float | None = None,
        steps: int | None = None,
        epochs: float | None = None,
        samples: int | None = None,
        batch_size: int | None = None,
        weight_decay: float | None = None,
        scheduler: Any = None,
        label_smoothing: float = 0.0,
        scenario: str | None = None,
        tuned: bool = False,
        layer: Any = None,
        **others: Any,
    ) -> Training:
        """The record of what is known. A keyword counts more than what is read from the optimizer.

        Args:
            optimizer: a name, a pair such as ``("sgd", 0.1)``, a torch optimizer, or a record made before.
            lr: the highest learning rate.
            momentum: of SGD; 0.9 where it is not told.
            steps: the number of optimizer steps of the whole training.
            epochs: in place of ``steps``, with ``samples`` and ``batch_size``.
            samples: the number of training samples.
            batch_size: samples per step.
            weight_decay: of the optimizer.
            scheduler: a learning-rate scheduler of torch, timm or transformers, which is copied and run without
                training; or ``"cosine"``, ``"linear"``, ``"constant"``. Without it a rate that falls to zero is
                assumed. A ``LambdaLR`` is stepped by batch, unless ``epochs`` are told and only by epoch it makes sense.
            label_smoothing: of the loss.
            scenario: ``"scratch"`` or ``"finetune"``.
            tuned: whether a search has set learning rate and weight decay for the plain model; then the rate stays.
            layer: the output layer; of several groups of the optimizer the one that trains it counts.
        """
        for name in others:
            raise unknown("keyword", name, Keywords.__annotations__)
        known = cls()
        if isinstance(optimizer, cls):
            known = optimizer
        elif optimizer is not None:
            known = cls(**_read(optimizer, layer))
        told: dict[str, Any] = {
            "lr": lr,
            "momentum": momentum,
            "steps": _steps(steps, epochs, samples, batch_size),
            "batch_size": batch_size,
            "weight_decay": weight_decay,
            "label_smoothing": share("label_smoothing", label_smoothing) or None,
            "scenario": scenario,
            "tuned": None if tuned is False else tuned,
        }
        known = replace(known, **{name: value for name, value in told.items() if value is not None})
        if scheduler is None:
            return known
        return replace(known, **_scheduled(scheduler, optimizer, known, epochs, layer))

    @cached_property
    def family(self) -> Family | None:
        """Which optimizers it belongs to, or ``None`` where none was named."""
        return None if self.optimizer is None else family(self.optimizer)

    @property
    def measured(self) -> bool:
        """Whether the law can use it: SGD or Adam's family, with a learning rate and a number of steps."""
        return self.family in ("sgd", "adam") and self.lr is not None and self.steps is not None

    @property
    def missing(self) -> tuple[str, ...]:
        """What the law still needs to know."""
        needed = {"optimizer": self.optimizer, "lr": self.lr, "steps": self.steps}
        return tuple(name for name, value in needed.items() if value is None)

    @property
    def rest(self) -> float:
        """1 − μ, of momentum 0.9 where it is not told: SGD's steps are longer by the inverse."""
        return 1 - (MOMENTUM if self.momentum is None else self.momentum)

    @property
    def spent(self) -> float:
        """lr·steps, as if the rate fell to zero, and for SGD as if with momentum 0.9."""
        if self.lr is None or self.steps is None:
            raise TstarError("lr and steps are needed for the product of both; pass them.")
        factor = RATE_FACTOR if self.rate_factor is None else self.rate_factor
        longer = (1 - MOMENTUM) / self.rest if self.family == "sgd" else 1.0
        # Of an absurd rate as well a number that JSON can hold.
        return min(self.lr * self.steps * longer * factor / RATE_FACTOR, sys.float_info.max)

    def to_dict(self) -> dict[str, Any]:
        """What is known, as plain JSON types."""
        values = {**asdict(self), "family": self.family}
        return {name: value for name, value in values.items() if value is not None}


def family(optimizer: str) -> Family:
    """``"sgd"``, ``"adam"``, ``"scale-free"`` (Lion, RMSprop, …); ``"other"`` for what is not known.

    >>> family("paged_adamw_8bit"), family("SGD"), family("Lion"), family("MyOptimizer")
    ('adam', 'sgd', 'scale-free', 'other')
    """
    name = _plain(optimizer)
    return next((kind for kind, names in _FAMILIES.items() if name in names), "other")


def _plain(name: str) -> str:
    """A name without the words that only say how it is computed."""
    plain = name.lower().replace("-", "_")
    for word in _HOW:
        plain = plain.replace(word, "")
    return plain.replace("_", "")


def _read(optimizer: Any, layer: Any) -> dict[str, Any]:
    """Name, learning rate, momentum and weight decay, from any form of ``optimizer``."""
    if isinstance(optimizer, str):
        return {"optimizer": _known(optimizer)}
    if isinstance(optimizer, tuple) and len(optimizer) == 2 and isinstance(optimizer[0], str):
        return {"optimizer": _known(optimizer[0]), "lr": optimizer[1]}
    if not getattr(optimizer, "param_groups", None):
        raise TstarError(
            "optimizer must be a torch optimizer, a name, or a pair of name and learning rate such as "
            f"('sgd', 0.1); got {shown(optimizer)}."
        )
    try:
        return reading.optimizer_facts(optimizer, layer, lambda name: family(name) != "other")
    except (TypeError, LookupError, AttributeError, ValueError) as error:
        if isinstance(error, TstarError):
            raise
        raise TstarError(
            f"optimizer must have param_groups as torch's optimizers have, each with params and lr; reading {shown(optimizer)} "
            f"failed: {type(error).__name__}: {error}."
        ) from error


def _known(name: str) -> str:
    every = [each for names in _FAMILIES.values() for each in names]
    if _plain(name) not in every and not _plain(name).startswith(_OTHERS):
        raise unknown("optimizer", name, every)
    return name.lower()


def steps_in(epochs: Any, per_epoch: int) -> int:
    """The steps of so many epochs, or parts of one."""
    return max(1, round(min(positive("epochs", epochs) * per_epoch, sys.float_info.max)))


def _steps(steps: Any, epochs: Any, samples: Any, batch_size: Any) -> Any:
    if epochs is not None:
        positive("epochs", epochs)
    whole_story = epochs is not None and samples is not None and batch_size is not None
    if epochs is None or (steps is not None and not whole_story):
        return steps
    if not whole_story:
        raise TstarError(
            f"epochs={shown(epochs)} gives a number of steps only with samples=… and batch_size=…; pass them, or steps=…."
        )
    per_epoch = math.ceil(
        whole("samples", samples, least=1) / whole("batch_size", batch_size, least=1)
    )
    counted = steps_in(epochs, per_epoch)
    if steps is not None and whole("steps", steps, least=1) != counted:
        raise TstarError(
            f"steps and epochs must agree, but epochs={shown(epochs)} of {shown(samples)} samples are {counted:,} steps, and "
            f"steps={shown(steps)}; leave one of them out."
        )
    return counted


def _scheduled(
    scheduler: Any, optimizer: Any, known: Training, epochs: float | None, layer: Any
) -> dict[str, Any]:
    """Name of the schedule, mean over highest rate and, of a scheduler, the highest rate itself."""
    if isinstance(scheduler, str):
        name = scheduler.lower()
        if name not in SCHEDULES:
            raise unknown("schedule", scheduler, SCHEDULES)
        return {"schedule": name, "rate_factor": SCHEDULES[name]}
    return reading.schedule_facts(scheduler, optimizer, known.steps, epochs, layer)
