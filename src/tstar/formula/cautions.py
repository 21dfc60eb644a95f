"""What a careful colleague would say before you train at T*: one small function for each concern.

Where the evidence speaks against the formula's number, :func:`safe_temperature` takes another one, and the notice of the
same code says why: the number and its warning come from one decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tstar.formula.training import Training

if TYPE_CHECKING:
    from tstar.formula.equation import Explanation

Severity = Literal["warning", "caution", "note"]

# The product of learning rate and steps, below which T* has been seen to cost accuracy. Measured with SGD
# (momentum 0.9) on 4,000 CIFAR-10 images, ResNet10, M = 64, T* = 5.4: at lr·steps = 9 the formula's T lost ten
# points against BN, T = 1, at 37 and 93 it was level, at 372 it gained two.
HARMFUL_BUDGET = 30.0
SMALL_BUDGET = 300.0
HOT = 2.0  # a small budget is a warning above this T
# The fewest steps in the paper's own fit: 5,000 images, batches of 128, 200 epochs.
FITTED_STEPS = 7_800
# The paper's transformers failed at lr 0.1 and trained at 0.01 (footnotes of its transformer table).
TRANSFORMER_LR = 0.03
FITTED_LR = (0.05, 0.2)  # around the paper's 0.1
VALIDATED_LR = 0.01  # the paper's fine-tuning
FEWEST_CLASSES = 8  # of the paper's data sets
BATCH_SIZES = (16, 128)  # the atlas has 16 to 64, the paper 128
CONSTANT = 0.9  # a mean over highest rate above this is a constant rate
SAFE = 1.0


@dataclass(frozen=True)
class Notice:
    """One concern: how grave it is, a stable code to filter by, and what to do."""

    severity: Severity
    code: str
    message: str


def safe_temperature(result: Explanation) -> float:
    """T, or 1 where T is not known to help: optimizers without measurements, and SGD below 1 in fine-tuning."""
    if _not_measured(result.training):
        return min(result.computed, SAFE)
    return max(result.computed, SAFE) if _below_one_tuned(result) else result.computed


def _not_measured(training: Training) -> bool:
    return training.family in ("scale-free", "other")


def _below_one_tuned(result: Explanation) -> bool:
    training = result.training
    return training.family == "sgd" and training.scenario == "finetune" and result.computed < 1


def notices(result: Explanation, num_classes: float | None) -> tuple[Notice, ...]:
    """Everything worth saying about training at ``result`` in this way, the gravest first."""
    return by_gravity(
        *_range(result),
        *(_unlimited(result) if result.limit is None else _limited(result)),
        *_schedule(result.training),
        *_batches(result.training),
        *_task(result, num_classes),
    )


def by_gravity(*found: Notice) -> tuple[Notice, ...]:
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


def _limited(result: Explanation) -> Iterator[Notice]:
    """What to say where the training's limit has been taken into account."""
    limit = result.limit
    assert limit is not None
    if result.training.family == "sgd" and result.computed < 1:
        if result.temperature >= 1:
            yield Notice(
                "caution",
                "sgd-below-one",
                f"For so short a training the law gives {result.computed:.3g}, but transformers fine-tuned with SGD lost "
                "6 and 13 points below T = 1 and were best at 1, so T = 1 is advised.",
            )
        else:
            yield Notice(
                "caution",
                "sgd-below-one",
                "T below 1 with SGD gained up to 19 points for small networks from scratch, but fine-tuned transformers "
                "lost 6 and 13 points; if you fine-tune, pass scenario='finetune'.",
            )
    if limit.decides:
        yield Notice(
            "note",
            "budget",
            f"For long training T* would be {result.bound:.3g}; yours has too few steps, or too low a learning rate, to "
            "learn at that.",
        )


def _unlimited(result: Explanation) -> Iterator[Notice]:
    """What to say where the formula does not know how one trains."""
    training = result.training
    if _not_measured(training):
        yield from _unmeasured(result)
        return
    if training.family == "adam":
        yield Notice(
            "caution",
            "other-optimizer",
            f"The coefficients were fitted with SGD, not {training.optimizer}; adaptive optimizers respond to T "
            "otherwise. Check with tstar.check.",
        )
    yield from _rate(training)
    if training.measured and training.family == "sgd":
        yield from _budget(training.spent, result.temperature)
    elif training.steps is not None and training.steps < FITTED_STEPS:
        yield Notice(
            "caution",
            "few-steps",
            f"{training.steps:,} steps are fewer than the {FITTED_STEPS:,} to 150,000 of the fit; the best T falls with the "
            "number of steps. Check with tstar.check, or stay near T = 1.",
        )
    if training.missing:
        words = {
            "optimizer": "the optimizer",
            "lr": "the learning rate",
            "steps": "the number of steps",
        }
        yield Notice(
            "caution",
            "unknown-training",
            f"This T is for SGD at lr 0.1 over 200 epochs, as in the paper; a short training wants far less. Give "
            f"{_and([words[name] for name in training.missing])} for a T that fits yours.",
        )


def _unmeasured(result: Explanation) -> Iterator[Notice]:
    name = result.training.optimizer
    if result.training.family == "scale-free":
        why = f"the steps of {name} do not see the gradient's scale, and T was measured for SGD and Adam only"
    else:
        why = f"T was measured for SGD and Adam's family, not for {name}"
    if result.temperature < result.computed:
        message = f"The formula would say {result.computed:.3g}, but {why}: do not raise T without tstar.check."
    else:
        message = f"{why[0].upper()}{why[1:]}: check with tstar.check."
    yield Notice("caution", "other-optimizer", message)


def _rate(training: Training) -> Iterator[Notice]:
    low, high = FITTED_LR
    if training.family != "sgd" or training.lr is None or low <= training.lr <= high:
        return
    known = training.scenario == "finetune" and training.lr == VALIDATED_LR
    yield Notice(
        "note" if known else "caution",
        "other-lr",
        f"The coefficients were fitted at SGD lr 0.1, not {training.lr:g}"
        f"{' (validated by the paper for fine-tuning)' if known else ''}; the best T falls with the learning rate.",
    )


def _budget(spent: float, T: float) -> Iterator[Notice]:
    if spent < HARMFUL_BUDGET and T > HOT:
        yield Notice(
            "warning",
            "small-budget",
            f"lr·steps = {spent:.3g} is far below the fit's (780 to 15,000): T = {T:.3g} is likely to cost accuracy here "
            "(ten points in our measurement at 9). Leave out the variant or the coefficients for a T that fits this "
            "training.",
        )
    elif spent < SMALL_BUDGET:
        yield Notice(
            "caution",
            "small-budget",
            f"lr·steps = {spent:.3g} is below the fit's (780 to 15,000): the best T is lower than the formula's. Check "
            "with tstar.check, or stay nearer T = 1.",
        )


def _schedule(training: Training) -> Iterator[Notice]:
    if training.rate_factor is not None and training.rate_factor > CONSTANT:
        yield Notice(
            "caution",
            "constant-rate",
            "A constant learning rate was not measured; its steps count twice those of a rate that falls to zero.",
        )
    elif training.schedule is not None and training.rate_factor is None:
        yield Notice(
            "caution",
            "schedule-unread",
            f"The schedule {training.schedule} could not be run without training; a rate that falls to zero is assumed. "
            "Pass epochs=… if it steps once per epoch.",
        )


def _batches(training: Training) -> Iterator[Notice]:
    low, high = BATCH_SIZES
    size = training.batch_size
    if size == 1:
        yield Notice(
            "warning",
            "batch-of-one",
            "Batches of one sample have no variance: the inserted BatchNorm then never learns its statistics. Use "
            "larger batches, or temper(..., norm='layer').",
        )
    elif size is not None and not low <= size <= high:
        yield Notice(
            "caution",
            "batch-size",
            f"Batches of {size:,} were not measured (the runs had {low} to {high}).",
        )


def _task(result: Explanation, num_classes: float | None) -> Iterator[Notice]:
    smoothing = result.training.label_smoothing
    if smoothing > 0:
        yield Notice(
            "caution",
            "label-smoothing",
            f"Label smoothing ({smoothing:g}) and T* do not combine well: in the paper's table on it the formula "
            "loses part of its gain. Prefer T* without smoothing.",
        )
    if num_classes is not None and num_classes < FEWEST_CLASSES and result.limit is None:
        yield Notice(
            "caution",
            "few-classes",
            f"K = {num_classes:g}: the formula has not been tried below {FEWEST_CLASSES} classes.",
        )


def transformer_rate(training: Training) -> Iterator[Notice]:
    """A transformer whose SGD rate is one at which the paper's failed."""
    if training.family == "sgd" and training.lr is not None and training.lr > TRANSFORMER_LR:
        yield Notice(
            "warning",
            "transformer-lr",
            f"A transformer at SGD lr {training.lr:g}: in the paper ViT-B/16 fell to 5 % and Swin-T to 41 % at lr 0.1 and "
            "T* of csgcn, and reached 54 % and 74 % at lr 0.01. Lower the learning rate.",
        )


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
