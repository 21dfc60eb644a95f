"""How one trains, as one record: from keywords, a torch optimizer, or a trainer's arguments.

The lab's configurations, the rows of its stores and the table of recipes use the same names. torch
is never imported: its objects, and those of timm, transformers, accelerate and Fabric, are read by
what they offer.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any, Literal

from tstar.errors import TstarError, guarded, number, positive, share, shown, unknown, whole

Family = Literal["sgd", "adam", "other"]
SCENARIOS = ("scratch", "finetune")
MOMENTUM = 0.9  # of the runs that the law was measured on
SEPARATE = 2.99  # from this ratio on head and body have rates of their own: 3, but for rounding

# The names of optimizers that were measured, in any library.
_FAMILIES: Mapping[Family, tuple[str, ...]] = {
    "sgd": ("sgd", "sgdw"),
    "adam": ("adam", "adamw", "nadam", "nadamw", "radam", "adamp"),
}
# Words that only say how it is computed: adamw_torch_fused, paged_adamw_8bit.
_HOW = (
    *("torch", "tpu", "npu", "xla", "apex", "anyprecision", "hf", "bnb", "fused", "paged"),
    *("8bit", "32bit", "4bit", "deepspeed", "cpu", "tf", "legacy", "fabric"),
)
# Where SAM, Lookahead, Fabric and accelerate keep the optimizer that they wrap.
_INSIDE = ("base_optimizer", "_base_optimizer", "_optimizer", "optimizer")


def described(
    meaning: str,
    default: Any = None,
    *,
    label: str = "",
    unit: str = "",
    check: Callable[[str, object], Any] | None = None,
    **more: Any,
) -> Any:
    """A field of a record, with what command lines, stores, tables and pages say of it.

    ``check`` refuses a wrong value; ``more`` is what the tables of a larger record need besides.
    """
    about = {"meaning": meaning, "label": label, "unit": unit, "check": check}
    return field(default=default, metadata={**about, **more})


def with_default(name: str, default: Any, **more: Any) -> Any:
    """The field of :class:`Training` of that name with a default of another record's own."""
    known = next(item for item in fields(Training) if item.name == name)
    return field(default=default, metadata={**known.metadata, **more})


_count = partial(whole, least=1)


@dataclass(frozen=True)
class Training:
    """How one trains, as far as it is known; ``None`` for what is not."""

    optimizer: str | None = described("the optimizer's name", label="optimizer")
    lr: float | None = described("the highest learning rate", label="lr", check=positive)
    momentum: float | None = described("momentum of SGD", label="momentum", check=share)
    weight_decay: float | None = described(
        "weight decay", label="weight decay", check=partial(positive, zero=True)
    )
    batch_size: int | None = described(
        "samples per optimizer step, over all processes", label="batch size", check=_count
    )
    steps: int | None = described(
        "optimizer steps in all", label="steps", unit="steps", check=_count
    )
    epochs: float | None = described(
        "passes over the training part", label="epochs", unit="epochs", check=positive
    )
    samples: int | None = described(
        "training samples", label="samples", unit="samples", check=_count
    )
    schedule: str | None = described("the schedule of the learning rate", label="schedule")
    label_smoothing: float = described(
        "share ε of y' = (1 − ε)·y + ε/K", 0.0, label="label smoothing", check=share
    )
    scenario: str | None = described('"scratch" or "finetune"', label="scenario")
    tuned: bool = described(
        "a search has set rate and decay for the plain model", False, label="tuned"
    )

    def __post_init__(self) -> None:
        for item in fields(self):  # a whole number may stand for a float
            value, check = getattr(self, item.name), item.metadata["check"]
            kinds = str(item.type).split(" | ")
            if value is not None and check is not None:
                object.__setattr__(self, item.name, check(item.name, value))
            elif kinds[0] in ("str", "bool") and type(value).__name__ not in (*kinds, "NoneType"):
                raise TstarError(f"{item.name} must be a {kinds[0]}, got {shown(value)}.")
        if self.scenario not in (None, *SCENARIOS):
            raise unknown("scenario", self.scenario, SCENARIOS)

    @classmethod
    def of(
        cls,
        optimizer: Any = None,
        *,
        args: Any = None,
        accumulate: Any = 1,
        scheduler: Any = None,
        layer: Any = None,
        **known: Any,
    ) -> Training:
        """The record of what is known. A keyword counts more than what an object says.

        Args:
            optimizer: a name, a torch optimizer, or a record.
            args: transformers' ``TrainingArguments``, in place of the keywords.
            accumulate: batches per optimizer step, over all processes that ``torch.distributed``
                does not know of yet; or what knows both: ``TrainingArguments``, transformers' or
                Lightning's ``Trainer``, accelerate's ``Accelerator``.
            scheduler: a torch scheduler, of which the highest rate is read.
            layer: the output layer, for an optimizer whose groups have several rates.
            known: the fields of the record; ``batch_size`` is that of one batch of one process,
                and ``epochs``, ``samples`` and ``batch_size`` together give ``steps``.
        """
        names = [item.name for item in fields(Training)]
        for name in known:
            if name not in names:
                raise unknown("keyword", name, [*names, "args", "accumulate", "scheduler"])
        given = {name: value for name, value in known.items() if value is not None}
        if args is not None:
            given = {**read_arguments(args), **given}  # which refuses what is none
            optimizer = args.optim if optimizer is None else optimizer
            accumulate = args if accumulate == 1 else accumulate
        record = cls()
        if isinstance(optimizer, Training):  # without the fields of a larger record
            record = cls(**{name: getattr(optimizer, name) for name in names})
        elif optimizer is not None:
            record = cls(**_read_optimizer(optimizer, layer, scheduler))
        if "batch_size" in given:
            several = batches_per_step(accumulate, optimizer) * processes()
            given["batch_size"] = whole("batch_size", given["batch_size"], least=1) * several
        record = replace(record, **given)
        if record.steps is None and record.epochs and record.samples and record.batch_size:
            steps = steps_in(record.epochs, record.samples, record.batch_size)
            record = replace(record, steps=steps)
        return record

    @cached_property
    def family(self) -> Family | None:
        """``"sgd"``, ``"adam"`` or ``"other"``; ``None`` if no optimizer was named."""
        return None if self.optimizer is None else family(self.optimizer)

    def to_dict(self) -> dict[str, Any]:
        """What is known, as plain JSON types."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def steps_in(epochs: float, samples: int, batch_size: int) -> int:
    """The optimizer steps of so many epochs, or parts of one."""
    steps = positive("epochs", epochs) * math.ceil(samples / batch_size)
    return max(1, round(min(steps, sys.float_info.max)))


# -- names -----------------------------------------------------------------------------------------
def family(optimizer: str) -> Family:
    """``"sgd"``, ``"adam"``, or ``"other"`` for what was not measured.

    >>> family("paged_adamw_8bit"), family("SGD"), family("Lion"), family("MyOptimizer")
    ('adam', 'sgd', 'other', 'other')
    """
    name = optimizer.lower().replace("-", "_")
    for word in _HOW:
        name = name.replace(word, "")
    name = name.replace("_", "")
    return next((kind for kind, names in _FAMILIES.items() if name in names), "other")


def optimizer_name(optimizer: Any) -> str:
    """The name of an optimizer's class, or of the measured one that it derives from."""
    names = [kind.__name__.lower() for kind in type(optimizer).__mro__]
    return next((name for name in names if family(name) != "other"), names[0])


# -- objects ---------------------------------------------------------------------------------------
def _read_optimizer(optimizer: Any, layer: Any, scheduler: Any) -> dict[str, Any]:
    """Name, rate, momentum and weight decay, from a name or a torch optimizer."""
    if isinstance(optimizer, str):
        return {"optimizer": optimizer.lower()}
    with guarded(f"optimizer must be a torch optimizer or a name; {shown(optimizer)} raised"):
        inner = unwrapped(optimizer)
        groups = inner.param_groups
        group = groups[main_group(inner, layer, scheduler)]
        heads = () if layer is None else groups_of(inner, layer)
        body = [one for i, one in enumerate(groups) if i not in heads] or groups
        decays = [one.get("weight_decay") for one in body]
        # A cycle of momentum starts at its highest; the optimizer's default is what was given.
        momentum = (inner.defaults if "max_momentum" in group else group).get("momentum")
        return {
            "optimizer": optimizer_name(inner),
            "lr": body_rate(inner, layer, scheduler),
            "momentum": momentum,
            "weight_decay": max(filter(None, decays), default=decays[0]),  # biases often have none
        }


def unwrapped(optimizer: Any) -> Any:
    """The optimizer inside SAM, Lookahead, accelerate's and Fabric's wrappers."""
    for _ in range(4):
        held = (getattr(optimizer, name, None) for name in _INSIDE)
        inner = next((one for one in held if getattr(one, "param_groups", None)), None)
        if inner is None or inner is optimizer:
            break
        optimizer = inner
    return optimizer


def group_rates(optimizer: Any, scheduler: Any = None) -> list[float | None]:
    """The highest rate of each group: a warm-up may have lowered it, a cycle will raise it.

    ``None`` for a group without a rate, such as Adafactor's.
    """
    parts = [*schedulers_in(scheduler)]
    rates: list[float | None] = []
    for i, group in enumerate(optimizer.param_groups):
        found = [group.get(name) for name in ("max_lr", "initial_lr", "lr")]
        for part in parts:
            lists = (getattr(part, name, None) for name in ("base_lrs", "base_values", "max_lrs"))
            found += [rates_of[i] for rates_of in lists if rates_of and i < len(rates_of)]
        known = [number("A learning rate", rate) for rate in found if rate is not None]
        rates.append(max(known, default=None))
    return rates


def groups_of(optimizer: Any, layer: Any) -> list[int]:
    """Which of an optimizer's groups train a layer."""
    mine = {id(p) for p in layer.parameters()}
    groups = optimizer.param_groups
    return [i for i in range(len(groups)) if mine & {*map(id, groups[i]["params"])}]


def main_group(optimizer: Any, layer: Any = None, scheduler: Any = None) -> int:
    """The group whose rate and decay count: of those that train the layer, or of all.

    It has the highest rate, and of equal rates the most decay: biases often have none.
    """
    rates, groups = group_rates(optimizer, scheduler), optimizer.param_groups
    places = (layer is not None and groups_of(optimizer, layer)) or range(len(groups))
    return max(places, key=lambda i: (rates[i] or 0.0, groups[i].get("weight_decay") or 0.0, -i))


def body_rate(optimizer: Any, layer: Any = None, scheduler: Any = None) -> float | None:
    """The rate of the training: that of the head's group, or the body's if the head has its own."""
    rates = group_rates(optimizer, scheduler)
    head = rates[main_group(optimizer, layer, scheduler)]
    mine = [] if layer is None else groups_of(optimizer, layer)
    others = [rate for i, rate in enumerate(rates) if i not in mine and rate is not None]
    body = max(others, default=None)
    own = head and body and max(head / body, body / head) >= SEPARATE
    return body if own else head


def own_head_rate(optimizer: Any, layer: Any, scheduler: Any = None) -> float | None:
    """The head's rate, if it has one of its own, far from the body's."""
    head = group_rates(optimizer, scheduler)[main_group(optimizer, layer, scheduler)]
    return head if head != body_rate(optimizer, layer, scheduler) else None


def schedulers_in(scheduler: Any) -> list[Any]:
    """The schedulers of torch, timm or transformers in one, or in a list, and their parts."""
    parts: list[Any] = []
    for one in scheduler if isinstance(scheduler, list | tuple) else [scheduler]:
        inner = getattr(one, "scheduler", one)  # accelerate's wrapper
        if inner is None or isinstance(inner, str):
            continue
        if not hasattr(inner, "optimizer"):
            raise TstarError(
                f"scheduler must be a learning-rate scheduler, got {type(inner).__name__}."
            )
        parts += [inner, *schedulers_in(list(getattr(inner, "_schedulers", ())))]
    return parts


def read_arguments(args: Any) -> dict[str, Any]:
    """The fields that transformers' ``TrainingArguments`` know."""
    with guarded("args must be transformers' TrainingArguments; reading them failed"):
        known = {
            "lr": args.learning_rate,
            "weight_decay": args.weight_decay,
            "batch_size": args.per_device_train_batch_size,
            "label_smoothing": args.label_smoothing_factor,
            "schedule": str(getattr(args.lr_scheduler_type, "value", args.lr_scheduler_type)),
        }
        length = (
            {"steps": args.max_steps} if args.max_steps > 0 else {"epochs": args.num_train_epochs}
        )
        return known | length


def processes() -> int:
    """The number of processes that train together, if ``torch.distributed`` knows."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return int(distributed.get_world_size())


def batches_per_step(accumulate: Any, optimizer: Any = None) -> int:
    """Batches in one optimizer step of one process: a number, or as a trainer or accelerate says."""
    source = getattr(accumulate, "args", accumulate)  # transformers' Trainer
    names = ("gradient_accumulation_steps", "accumulate_grad_batches")
    count = next((getattr(source, name) for name in names if hasattr(source, name)), None)
    if count is None:
        prepared = getattr(getattr(optimizer, "gradient_state", None), "num_steps", 1)
        return whole("accumulate", prepared if accumulate == 1 else accumulate, least=1)
    several: int = getattr(source, "world_size", 0) or getattr(source, "num_processes", 1)
    return whole("accumulate", count, least=1) * max(1, several // processes())
