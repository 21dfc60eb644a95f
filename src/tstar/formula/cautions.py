"""What a careful colleague would say before you train at T*: one small function for each concern."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tstar.errors import TstarError
from tstar.formula.equation import Explanation, Limit
from tstar.formula.law import MOMENTUM, Training, family
from tstar.numbers import number

if TYPE_CHECKING:
    from torch import nn

Severity = Literal["warning", "caution", "note"]

# The product of learning rate and steps, below which T* has been seen to cost accuracy. Measured with SGD
# (momentum 0.9) on 4,000 CIFAR-10 images, ResNet10, M = 64, T* = 5.4: at lr·steps = 9 the formula's T lost ten
# points against T = 1, at 37 and 93 it was level, at 372 it gained two.
_HARMFUL_BUDGET = 30.0
_SMALL_BUDGET = 300.0
# The fewest steps in the paper's own fit: 5,000 images, batches of 128, 200 epochs.
_FITTED_STEPS = 7_800
# The paper's transformers failed at lr 0.1 and trained at 0.01 (footnotes of its transformer table).
_TRANSFORMER_LR = 0.03


@dataclass(frozen=True)
class Notice:
    """One concern: how grave it is, a stable code to filter by, and what to do."""

    severity: Severity
    code: str
    message: str


@dataclass(frozen=True)
class Plan:
    """How the user means to train, as far as it was told."""

    optimizer: str | None = None
    lr: float | None = None
    momentum: float = MOMENTUM
    steps: int | None = None
    batch_size: int | None = None
    label_smoothing: float = 0.0
    scenario: str = "scratch"
    attention: bool = False


def read_optimizer(
    optimizer: Any, layer: nn.Module | None = None
) -> tuple[str | None, float | None, float | None]:
    """(name, lr, momentum) of a torch optimiser, of a name, or of a pair of name and learning rate.

    Of several groups of parameters the one that trains ``layer``, the output layer, counts: T acts there.
    Where none does, since the model is tempered later, it is the one with the highest rate.
    """
    if optimizer is None:
        return None, None, None
    if isinstance(optimizer, str):
        return optimizer.lower(), None, None
    if isinstance(optimizer, tuple) and len(optimizer) == 2 and isinstance(optimizer[0], str):
        name, lr = optimizer[0], number("The learning rate", optimizer[1])
        if lr <= 0:
            raise TstarError(f"The learning rate must be a positive number, got {optimizer[1]!r}.")
        return name.lower(), lr, None
    groups = getattr(optimizer, "param_groups", None)
    if not groups:
        raise TstarError(
            "optimizer must be a torch optimiser, a name, or a pair of name and learning rate such as "
            f"('sgd', 0.1); got {optimizer!r}."
        )
    mine = {id(p) for p in layer.parameters()} if layer is not None else set()
    own = [group for group in groups if any(id(p) in mine for p in group["params"])]
    group = max(own or groups, key=_highest_rate)
    # A cycle of momentum starts at its highest; what the user gave is the optimiser's default.
    cycled = "max_momentum" in group
    momentum = optimizer.defaults.get("momentum") if cycled else group.get("momentum")
    return type(optimizer).__name__.lower(), _highest_rate(group), momentum


def _highest_rate(group: Any) -> float:
    """The rate that a schedule falls from: a warm-up may have lowered it, a cycle will raise it."""
    known = (group.get("max_lr"), group.get("initial_lr"), group["lr"])
    return max(float(rate) for rate in known if rate is not None)


def notices(result: Explanation, num_classes: int, plan: Plan) -> tuple[Notice, ...]:
    """Everything worth saying about training at ``result`` in this way, the gravest first."""
    found = [
        *_range(result),
        *_training(plan, result),
        *_task(plan, num_classes, result.limit is not None),
    ]
    order = {"warning": 0, "caution": 1, "note": 2}
    return tuple(sorted(found, key=lambda notice: order[notice.severity]))


def _range(result: Explanation) -> Iterator[Notice]:
    for flag in result.flags:
        if flag.level == "extrapolation":
            yield Notice("caution", "extrapolation", f"{flag.message}.")
        else:
            yield Notice("note", "validated", f"{flag.message}.")
    if result.clipped:
        yield Notice(
            "caution",
            "clipped",
            f"The formula gives {result.unclipped:.3g}, outside its bounds; it was clipped to {result.bound:g}.",
        )


def _training(plan: Plan, result: Explanation) -> Iterator[Notice]:
    if result.limit is not None:
        yield from _limited(plan, result, result.limit)
    else:
        yield from _unlimited(plan, result)
    if (
        plan.attention
        and plan.lr is not None
        and _family(plan) == "sgd"
        and plan.lr > _TRANSFORMER_LR
    ):
        yield Notice(
            "warning",
            "transformer-lr",
            f"A transformer at SGD lr {plan.lr:g}: in the paper ViT-B/16 fell to 5 % and Swin-T to 41 % at lr 0.1 and "
            "T* of csgcn, and reached 54 % and 74 % at lr 0.01. Lower the learning rate.",
        )
    if plan.batch_size == 1:
        yield Notice(
            "warning",
            "batch-of-one",
            "Batches of one sample have no variance: the inserted BatchNorm then never learns its statistics. Use "
            "larger batches, or temper(..., norm='layer').",
        )


def _limited(plan: Plan, result: Explanation, limit: Limit) -> Iterator[Notice]:
    """What to say where the budget has been taken into account."""
    if _family(plan) == "sgd" and result.temperature < 1:
        tuned = plan.scenario == "finetune"
        yield Notice(
            "warning" if tuned else "caution",
            "sgd-below-one",
            "T below 1 with SGD gained up to 19 points for small networks from scratch, but fine-tuned transformers were "
            f"best at T = 1 and lost 6 and 13 points below it. {'Train at T = 1.' if tuned else 'When in doubt, T = 1.'}",
        )
    if limit.decides:
        yield Notice(
            "note",
            "budget",
            f"For long training T* would be {result.bound:.3g}; yours has too few steps, or too low a learning rate, to "
            "learn at that.",
        )


def _unlimited(plan: Plan, result: Explanation) -> Iterator[Notice]:
    """What to say where the formula does not know how one trains."""
    yield from _optimizer(plan)
    if plan.lr is not None and plan.steps is not None and _family(plan) == "sgd":
        yield from _budget(Training("sgd", plan.lr, plan.steps, plan.momentum).spent, result)
    elif plan.steps is not None and plan.steps < _FITTED_STEPS:
        yield Notice(
            "caution",
            "few-steps",
            f"{plan.steps:,} steps are fewer than the {_FITTED_STEPS:,} to 150,000 of the fit; the best T falls with the "
            "number of steps. Check with tstar.check, or stay near T = 1.",
        )
    if plan.optimizer is None or plan.lr is None or plan.steps is None:
        yield Notice(
            "note",
            "unknown-training",
            "Pass optimizer=… (with its learning rate) and steps=… for a T that fits your way of training: the paper's "
            "formula was fitted with SGD at lr 0.1 over 200 epochs.",
        )


def _optimizer(plan: Plan) -> Iterator[Notice]:
    if plan.optimizer is not None and _family(plan) != "sgd":
        yield Notice(
            "caution",
            "other-optimizer",
            f"The coefficients were fitted with SGD, not {plan.optimizer}; adaptive optimisers respond to T otherwise. "
            "Check with tstar.check.",
        )
    if _family(plan) == "sgd" and plan.lr is not None and not 0.05 <= plan.lr <= 0.2:
        known = (
            " (validated by the paper for fine-tuning)"
            if plan.scenario == "finetune" and plan.lr == 0.01
            else ""
        )
        yield Notice(
            "note" if known else "caution",
            "other-lr",
            f"The coefficients were fitted at SGD lr 0.1, not {plan.lr:g}{known}; the best T falls with the learning rate.",
        )


def _family(plan: Plan) -> str | None:
    return None if plan.optimizer is None else family(plan.optimizer)


def _budget(budget: float, result: Explanation) -> Iterator[Notice]:
    if budget < _HARMFUL_BUDGET and result.temperature > 2:
        yield Notice(
            "warning",
            "small-budget",
            f"lr·steps = {budget:.3g} is far below the fit's (780 to 15,000): T = {result.temperature:.3g} is likely to cost "
            "accuracy here (ten points in our measurement at 9). Train at T = 1, longer, or at a higher rate.",
        )
    elif budget < _SMALL_BUDGET:
        yield Notice(
            "caution",
            "small-budget",
            f"lr·steps = {budget:.3g} is below the fit's (780 to 15,000): the best T is lower than the formula's. Check "
            "with tstar.check, or stay nearer T = 1.",
        )


def _task(plan: Plan, num_classes: int, limited: bool) -> Iterator[Notice]:
    if plan.label_smoothing > 0:
        yield Notice(
            "caution",
            "label-smoothing",
            f"Label smoothing ({plan.label_smoothing:g}) and T* do not combine well: in the paper's table on it the formula "
            "loses part of its gain. Prefer T* without smoothing.",
        )
    if num_classes < 8 and not limited:
        yield Notice(
            "caution",
            "few-classes",
            f"K = {num_classes}: the formula has not been tried below 8 classes.",
        )
