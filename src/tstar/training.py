"""How one trains, as one frozen record: from keywords, or from a torch optimizer and scheduler.

torch is never imported: its objects, and those of timm, transformers, accelerate and Fabric, are
read by what they offer. What to advise for a training belongs in ``law.py`` and ``advice.py``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, TypedDict

from tstar.checks import number, positive, share, whole
from tstar.errors import TstarError, guarded, shown, unknown

Family = Literal["sgd", "adam", "other"]
SCENARIOS = ("scratch", "finetune")
MOMENTUM = 0.9  # of the runs that the law was measured on

# The names of optimizers that were measured, and of others that people use, in any library.
_FAMILIES: Mapping[Family, tuple[str, ...]] = {
    "sgd": ("sgd", "sgdw"),
    "adam": ("adam", "adamw", "nadam", "nadamw", "radam", "adamp"),
    "other": (
        *("lion", "lamb", "lars", "adafactor", "rmsprop", "muon", "adagrad", "adadelta", "adamax"),
        *("rprop", "adabelief", "sophia", "prodigy", "novograd", "adan", "ademamix", "soap"),
        *("shampoo", "signsgd", "asgd", "lbfgs", "sparseadam", "lomo", "adalomo"),
    ),
}
_OTHERS = ("galore", "apollo", "grok", "schedulefree")  # what they make of Adam was not measured
# Words that say how it is computed, not what: adamw_torch_fused, paged_adamw_8bit.
_HOW = (
    *("torch", "tpu", "npu", "xla", "apex", "anyprecision", "hf", "bnb", "fused", "paged"),
    *("8bit", "32bit", "4bit", "deepspeed", "cpu", "tf", "legacy", "fabric"),
)
# Where SAM, Lookahead, Fabric and accelerate keep the optimizer that they wrap.
_INSIDE = ("base_optimizer", "_base_optimizer", "_optimizer", "optimizer")


class Keywords(TypedDict, total=False):
    """What ``temperature`` and ``recommend`` can be told of a training; see :meth:`Training.of`."""

    optimizer: Any
    lr: float | None
    momentum: float | None
    steps: int | None
    epochs: float | None
    samples: int | None
    batch_size: int | None
    accumulate: Any
    weight_decay: float | None
    scheduler: Any
    label_smoothing: float
    scenario: str | None
    tuned: bool


_CHECKS: Mapping[str, Callable[[str, object], float]] = {
    "lr": positive,
    "momentum": share,
    "steps": partial(whole, least=1),
    "batch_size": partial(whole, least=1),
    "weight_decay": partial(positive, zero=True),
    "label_smoothing": share,
}


@dataclass(frozen=True)
class Training:
    """How one trains, as far as it is known; ``None`` for what was not told.

    As in :meth:`of`; but ``optimizer`` is a name, ``lr`` the highest rate, and ``batch_size``
    counts the samples of one optimizer step over all processes.
    """

    optimizer: str | None = None
    lr: float | None = None
    steps: int | None = None
    momentum: float | None = None
    batch_size: int | None = None
    weight_decay: float | None = None
    label_smoothing: float = 0.0
    scenario: str | None = None
    tuned: bool = False

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check(name, getattr(self, name)))
        if not isinstance(self.scenario, str | None) or self.scenario not in (None, *SCENARIOS):
            raise unknown("scenario", self.scenario, SCENARIOS)

    @classmethod
    def of(
        cls,
        optimizer: Any = None,
        *,
        lr: Any = None,
        epochs: Any = None,
        samples: Any = None,
        batch_size: Any = None,
        accumulate: Any = 1,
        scheduler: Any = None,
        layer: Any = None,
        **others: Any,
    ) -> Training:
        """The record of what is known. A keyword counts more than what an optimizer says.

        Args:
            optimizer: a name, a torch optimizer, or a record.
            lr: the highest learning rate. momentum: of SGD; 0.9 by default.
            steps: the number of optimizer steps of the whole training.
            epochs: in place of ``steps``, with ``samples``, their number, and ``batch_size``.
            batch_size: samples in one batch of one process.
            accumulate: batches per optimizer step, over all processes that ``torch.distributed``
                does not know of yet; or what knows both: transformers' ``TrainingArguments``,
                accelerate's ``Accelerator``, Lightning's ``Trainer``.
            weight_decay: of the optimizer.
            scheduler: a learning-rate scheduler, of which the highest rate is read; a name such as
                ``"cosine"`` changes nothing.
            label_smoothing: of the loss.
            scenario: ``"scratch"`` or ``"finetune"``.
            tuned: whether a search has set learning rate and weight decay for the plain model;
                then both stay.
            layer: the output layer; the optimizer's group that trains it counts.
        """
        for name in others:
            if name not in Keywords.__annotations__:
                raise unknown("keyword", name, Keywords.__annotations__)
        known = cls()
        if isinstance(optimizer, cls):
            known = optimizer
        elif optimizer is not None:
            known = cls(**_read(optimizer, layer))
        if batch_size is not None:
            several = batches_per_step(accumulate, optimizer) * processes()
            batch_size = whole("batch_size", batch_size, least=1) * several
        steps = _steps(others.pop("steps", None), epochs, samples, batch_size)
        if lr is None and scheduler is not None and not isinstance(scheduler, str):
            lr = _highest(scheduler, layer)
        told = {**others, "lr": lr, "steps": steps, "batch_size": batch_size}
        return replace(known, **{name: told[name] for name in told if told[name] is not None})

    @cached_property
    def family(self) -> Family | None:
        """``"sgd"``, ``"adam"`` or ``"other"``; ``None`` if no optimizer was named."""
        return None if self.optimizer is None else family(self.optimizer)

    @property
    def covered(self) -> bool:
        """Whether the law covers it: SGD or Adam's family, a learning rate, a number of steps."""
        return self.family in ("sgd", "adam") and self.lr is not None and self.steps is not None

    @property
    def missing(self) -> tuple[str, ...]:
        """What the law still needs to know."""
        needed = {"optimizer": self.optimizer, "lr": self.lr, "steps": self.steps}
        return tuple(name for name, value in needed.items() if value is None)

    @property
    def rest(self) -> float:
        """1 − μ, with momentum 0.9 by default: SGD's steps are longer by the inverse."""
        return 1 - (MOMENTUM if self.momentum is None else self.momentum)

    def to_dict(self) -> dict[str, Any]:
        """What is known, as plain JSON types."""
        values = {**asdict(self), "family": self.family}
        return {name: value for name, value in values.items() if value is not None}


def family(optimizer: str) -> Family:
    """``"sgd"``, ``"adam"``, or ``"other"`` for what was not measured.

    >>> family("paged_adamw_8bit"), family("SGD"), family("Lion"), family("MyOptimizer")
    ('adam', 'sgd', 'other', 'other')
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
        every = [each for names in _FAMILIES.values() for each in names]
        if _plain(optimizer) not in every and not _plain(optimizer).startswith(_OTHERS):
            raise unknown("optimizer", optimizer, every)
        return {"optimizer": optimizer.lower()}
    with guarded(f"optimizer must be a torch optimizer or a name; {shown(optimizer)} raised"):
        inner = unwrapped(optimizer)
        group = inner.param_groups[(groups_of(inner, layer) or groups_of(inner))[0]]
        # A cycle of momentum starts at its highest; the optimizer's default is what was given.
        momentum = (inner.defaults if "max_momentum" in group else group).get("momentum")
        names = [kind.__name__.lower() for kind in type(inner).__mro__]
        known = (name for name in names if family(name) != "other")
        found = {"optimizer": next(known, names[0]), "lr": highest_rate(group)}
        return {**found, "momentum": momentum, "weight_decay": group.get("weight_decay")}


def unwrapped(optimizer: Any) -> Any:
    """The optimizer inside SAM, Lookahead, accelerate's and Fabric's wrappers."""
    for _ in range(4):
        held = (getattr(optimizer, name, None) for name in _INSIDE)
        inner = next((one for one in held if getattr(one, "param_groups", None)), None)
        if inner is None or inner is optimizer:
            break
        optimizer = inner
    return optimizer


def groups_of(optimizer: Any, layer: Any = None) -> list[int]:
    """Which of an optimizer's groups train a layer (all without one), the one that counts first.

    It has the highest rate, and of equal rates the most decay: biases often have none.
    """
    groups = optimizer.param_groups
    mine = set() if layer is None else {id(p) for p in layer.parameters()}

    def rank(i: int) -> tuple[float, float]:
        return highest_rate(groups[i]), groups[i].get("weight_decay") or 0.0

    places = range(len(groups))
    own = [i for i in places if layer is None or mine & {*map(id, groups[i]["params"])}]
    return sorted(own, key=rank, reverse=True)


def highest_rate(group: Any) -> float:
    """The rate that a schedule falls from: a warm-up may have lowered it, a cycle will raise it."""
    rates = (group.get("max_lr"), group.get("initial_lr"), group.get("lr"))
    return max(number("The learning rate", rate) for rate in rates if rate is not None)


def _highest(scheduler: Any, layer: Any) -> float:
    """The highest rate that a scheduler knows for the groups that train the output layer."""
    inner = getattr(scheduler, "scheduler", scheduler)  # accelerate's wrapper
    if not hasattr(inner, "optimizer"):
        raise TstarError(
            "scheduler must be a learning-rate scheduler, or a name such as 'cosine'; got "
            f"{type(scheduler).__name__}."
        )
    optimizer = unwrapped(inner.optimizer)
    own = groups_of(optimizer, layer) or groups_of(optimizer)
    kept = [getattr(inner, name, None) or () for name in ("base_lrs", "base_values", "max_lrs")]
    rates = [rates[i] for rates in kept for i in own if i < len(rates)]
    known = [number("A scheduler's rate", rate) for rate in rates]
    return max(known + [highest_rate(optimizer.param_groups[i]) for i in own])


def processes() -> int:
    """The number of processes that train together, if ``torch.distributed`` knows."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return int(distributed.get_world_size())


def batches_per_step(accumulate: Any, optimizer: Any = None) -> int:
    """Batches in one optimizer step of one process: told, or as a trainer or accelerate has them."""
    names = ("gradient_accumulation_steps", "accumulate_grad_batches")
    told = next((getattr(accumulate, name) for name in names if hasattr(accumulate, name)), None)
    if told is None:
        prepared = getattr(getattr(optimizer, "gradient_state", None), "num_steps", 1)
        return whole("accumulate", prepared if accumulate == 1 else accumulate, least=1)
    several: int = getattr(accumulate, "world_size", 0) or getattr(accumulate, "num_processes", 1)
    return whole("accumulate", told, least=1) * max(1, several // processes())


def steps_in(epochs: Any, per_epoch: float) -> int:
    """The steps of so many epochs, or parts of one."""
    return max(1, round(min(positive("epochs", epochs) * per_epoch, sys.float_info.max)))


def _steps(steps: Any, epochs: Any, samples: Any, per_step: int | None) -> Any:
    if epochs is None or steps is not None:
        return steps
    if samples is None or per_step is None:
        raise TstarError(
            f"epochs={shown(epochs)} gives a number of steps only with samples=… and "
            "batch_size=…; pass them, or steps=…."
        )
    return steps_in(epochs, math.ceil(whole("samples", samples, least=1) / per_step))
