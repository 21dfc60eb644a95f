"""What a careful colleague would say before you train at T*: one small function for each concern.

Where the evidence speaks against the formula's number, :func:`safe_temperature` takes another one, and the notice of the
same code says why: the number and its warning come from one decision. The texts are data, since the calculator's page
says the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tstar.formula import law, similar
from tstar.formula.coefficients import published
from tstar.formula.training import Training

if TYPE_CHECKING:
    from tstar.formula.equation import Explanation

Severity = Literal["warning", "caution", "note"]
ORDER = ("warning", "caution", "note")

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
BATCH_SIZES = (8, 256)  # of the second atlas
LARGEST = 1_100_000  # parameters of a network that the second atlas trained from scratch
SAFE = 1.0

# Code (what follows "/" tells two texts of one code apart) → severity and text.
TEXTS: dict[str, tuple[Severity, str]] = {
    "extrapolation": ("caution", "{message}."),
    "validated": ("note", "{message}."),
    "clipped": (
        "caution",
        "The formula gives {unclipped}, outside its bounds; it was clipped to {bound}.",
    ),
    "sgd-below-one/tuned": (
        "caution",
        "For so short a training the formula gives {computed}, but transformers fine-tuned with SGD lost 6 and 13 points "
        "below T = 1 and were best at 1, so T = 1 is advised.",
    ),
    "sgd-below-one": (
        "caution",
        "T below 1 sharpens the logits of a training that is too short for its output layer; fine-tuned transformers lost 6 "
        "and 13 points there. If you fine-tune, pass scenario='finetune'.",
    ),
    "budget": (
        "note",
        "For long training T* would be {bound}; yours has too few steps, or too low a learning rate, to learn at that.",
    ),
    "other-optimizer/scale-free": (
        "caution",
        "The formula says {computed}, but the steps of {name} do not see the gradient's scale, and T was measured for SGD "
        "and Adam only. Do not raise T above 1 without tstar.check.",
    ),
    "other-optimizer/other": (
        "caution",
        "The formula says {computed}, but T was measured for SGD and Adam's family, not for {name}. Do not raise T above "
        "1 without tstar.check.",
    ),
    "other-optimizer": (
        "caution",
        "The coefficients were fitted with SGD, not {name}; adaptive optimizers respond to T otherwise. Check with "
        "tstar.check.",
    ),
    "other-lr": (
        "caution",
        "The coefficients were fitted at SGD lr 0.1, not {lr}; the best T falls with the learning rate.",
    ),
    "other-lr/validated": (
        "note",
        "The coefficients were fitted at SGD lr 0.1, not {lr} (validated by the paper for fine-tuning); the best T falls "
        "with the learning rate.",
    ),
    "small-budget/harmful": (
        "warning",
        "lr·steps = {spent} is far below the fit's (780 to 15,000): T = {T} is likely to cost accuracy here (ten points in "
        "our measurement at 9). Leave out the variant or the coefficients for a T that fits this training.",
    ),
    "small-budget": (
        "caution",
        "lr·steps = {spent} is below the fit's (780 to 15,000): the best T is lower than the formula's. Check with "
        "tstar.check, or stay nearer T = 1.",
    ),
    "few-steps": (
        "caution",
        "{steps} steps are fewer than the 7,800 to 150,000 of the fit; the best T falls with the number of steps. Check "
        "with tstar.check, or stay near T = 1.",
    ),
    "unknown-training": (
        "caution",
        "This T is for SGD at lr 0.1 over 200 epochs, as in the paper; in other trainings it gained nothing on average, and lost "
        "tens of points in some. Give {missing} for a T that fits yours.",
    ),
    "unknown-training/left": (
        "caution",
        "The paper's T = {computed} is for SGD at lr 0.1 over 200 epochs, which this is not, so nothing is advised. Give {missing} "
        "for a T that fits yours.",
    ),
    "far": (
        "caution",
        "Nothing like this training was measured{away}, so nothing is advised. The law would give T = {T}; the paper's formula, "
        "for 200 epochs of SGD at 0.1, {bound}.",
    ),
    "no-gain": (
        "note",
        "The {trainings} most similar trainings gained nothing beyond their error, so nothing is advised. The law would give "
        "T = {T}.",
    ),
    "schedule-unread": (
        "caution",
        "The schedule {name} could not be run without training; a rate that falls to zero is assumed. Pass epochs=… if it "
        "steps once per epoch.",
    ),
    "batch-of-one": (
        "warning",
        "Batches of one sample have no variance: the inserted BatchNorm then never learns its statistics. Use larger "
        "batches, or temper(..., norm='layer').",
    ),
    "higher-rate": (
        "note",
        "{factor} times the rate (lr = {lr}) at T = {T} gained more than T at the plain model's rate; "
        "tstar.recommend decides for your model.",
    ),
    "no-batch-size": (
        "note",
        "T is for batches of {size}; pass batch_size for a T that fits yours.",
    ),
    "batch-size": (
        "caution",
        "Batches of {size} were not measured (the runs had {low} to {high}).",
    ),
    "label-smoothing": (
        "caution",
        "Label smoothing ({smoothing}) and T* do not combine well: in the paper's table on it the formula loses part of "
        "its gain. Prefer T* without smoothing.",
    ),
    "few-classes": ("caution", "K = {K}: the formula has not been tried below 8 classes."),
    "transformer-lr": (
        "warning",
        "A transformer at SGD lr {lr}: in the paper ViT-B/16 fell to 5 % and Swin-T to 41 % at lr 0.1 and T* of csgcn, and "
        "reached 54 % and 74 % at lr 0.01. Lower the rate to 0.03 or less, and ask again.",
    ),
    "large-network": (
        "caution",
        "Your network has {size} parameters. Those that were measured from scratch had up to {largest}; among them the gain did not fall "
        "with size. Try yours first: tstar.check.",
    ),
}
AWAY = " (the nearest is {distance} standard deviations off)"  # of "far", where anything can be compared
WORDS = {"optimizer": "the optimizer", "lr": "the learning rate", "steps": "the number of steps"}


@dataclass(frozen=True)
class Notice:
    """One concern: how grave it is, a stable code to filter by, and what to do."""

    severity: Severity
    code: str
    message: str


def _say(key: str, **values: Any) -> Notice:
    severity, text = TEXTS[key]
    return Notice(severity, key.partition("/")[0], text.format(**values))


def leaves(result: Explanation, evidence: similar.Expectation | None) -> bool:
    """Whether the model is best left as it is.

    Nothing like this training was measured, or what was gained nothing; or what is known of it speaks against the paper's T, and
    too little is known for the law's.
    """
    told = result.training
    unlike = bool(told.missing) and _unlike_the_papers(told)
    return _not_measured(told) or unlike or (evidence is not None and not evidence.supports)


def safe_temperature(result: Explanation) -> float:
    """T, or 1 where T is not known to help: trainings like none that was measured, and SGD below 1 in fine-tuning."""
    training = result.training
    if result.leave:
        return SAFE
    if training.family == "sgd" and training.scenario == "finetune" and training.measured:
        return max(result.computed, SAFE)
    return result.computed


def _not_measured(training: Training) -> bool:
    return training.family in ("scale-free", "other")


def _unlike_the_papers(training: Training) -> bool:
    """Whether a fact that was told is not one of the paper's trainings."""
    few = training.steps is not None and training.steps < FITTED_STEPS
    return training.family == "adam" or few or any(n.severity != "note" for n in _rate(training))


def notices(result: Explanation, num_classes: float | None) -> tuple[Notice, ...]:
    """Everything worth saying about training at ``result`` in this way, the gravest first."""
    return by_gravity(
        *_range(result),
        *(_unlimited(result) if result.limit is None else _limited(result)),
        *_schedule(result.training),
        *(() if result.leave else _batches(result.training)),
        *_task(result, num_classes),
    )


def _papers(result: Explanation) -> bool:
    """Whether the coefficients are the paper's, for which what follows was measured."""
    return published().get(result.coefficients.name) == result.coefficients


def by_gravity(*found: Notice) -> tuple[Notice, ...]:
    return tuple(sorted(found, key=lambda notice: ORDER.index(notice.severity)))


def _range(result: Explanation) -> Iterator[Notice]:
    for flag in result.flags:
        yield _say(flag.level, message=flag.message)
    if result.clipped and result.temperature == result.bound and not result.leave:
        yield _say("clipped", unclipped=f"{result.unclipped:.3g}", bound=f"{result.bound:g}")


def _limited(result: Explanation) -> Iterator[Notice]:
    """What to say where the training's limit has been taken into account."""
    near, given = result.evidence, f"{result.computed:.3g}"
    if near is not None and near.far:
        away = AWAY.format(distance=f"{near.distance:.1f}") if near.trainings else ""
        yield _say("far", away=away, T=given, bound=f"{result.bound:.3g}")
    elif near is not None and not near.gained:
        yield _say("no-gain", trainings=near.trainings, T=given)
    if result.leave:
        return
    if result.training.family == "sgd" and result.computed < SAFE:
        tuned = result.temperature >= SAFE
        key = "sgd-below-one/tuned" if tuned else "sgd-below-one"
        yield _say(key, computed=f"{result.computed:.3g}")
    budget = result.coefficients.budget
    if budget is not None and budget.is_law and result.limit is not None:
        sgd = result.training.family == "sgd"
        if sgd and result.training.batch_size is None:
            yield _say("no-batch-size", size=law.BATCH)
        factor = similar.rate_of(result.training)
        if factor != 1 and result.training.lr is not None:
            T = budget.clip(result.limit.value * (factor**0.5 if sgd else 1.0))
            lr = f"{factor * result.training.lr:g}"
            yield _say("higher-rate", factor=f"{factor:g}", lr=lr, T=f"{T:.3g}")
    elif result.limit is not None and result.limit.decides:
        yield _say("budget", bound=f"{result.bound:.3g}")


def _unlimited(result: Explanation) -> Iterator[Notice]:
    """What to say where the formula does not know how one trains."""
    training = result.training
    if not _papers(result):
        return  # a set of the user's own holds for trainings like its own
    if _not_measured(training):
        key = f"other-optimizer/{training.family}"
        yield _say(key, computed=f"{result.computed:.3g}", name=training.optimizer)
        return
    if training.family == "adam":
        yield _say("other-optimizer", name=training.optimizer)
    yield from _rate(training)
    if training.measured and training.family == "sgd":
        yield from _budget(training.spent, result.temperature)
    elif training.steps is not None and training.steps < FITTED_STEPS:
        yield _say("few-steps", steps=f"{training.steps:,}")
    if training.missing:
        missing = _and([WORDS[name] for name in training.missing])
        key = "unknown-training/left" if result.leave else "unknown-training"
        yield _say(key, missing=missing, computed=f"{result.computed:.3g}")


def _rate(training: Training) -> Iterator[Notice]:
    low, high = FITTED_LR
    if training.family == "sgd" and training.lr is not None and not low <= training.lr <= high:
        known = training.scenario == "finetune" and training.lr == VALIDATED_LR
        yield _say("other-lr/validated" if known else "other-lr", lr=f"{training.lr:g}")


def _budget(spent: float, T: float) -> Iterator[Notice]:
    if spent < HARMFUL_BUDGET and T > HOT:
        yield _say("small-budget/harmful", spent=f"{spent:.3g}", T=f"{T:.3g}")
    elif spent < SMALL_BUDGET:
        yield _say("small-budget", spent=f"{spent:.3g}")


def _schedule(training: Training) -> Iterator[Notice]:
    if training.schedule is not None and training.rate_factor is None:
        yield _say("schedule-unread", name=training.schedule)


def _batches(training: Training) -> Iterator[Notice]:
    (low, high), size = BATCH_SIZES, training.batch_size
    if size == 1:
        yield _say("batch-of-one")
    elif size is not None and not low <= size <= high:
        yield _say("batch-size", size=f"{size:,}", low=low, high=high)


def _task(result: Explanation, num_classes: float | None) -> Iterator[Notice]:
    smoothing = result.training.label_smoothing
    if smoothing > 0:
        yield _say("label-smoothing", smoothing=f"{smoothing:g}")
    few = num_classes is not None and num_classes < FEWEST_CLASSES
    if few and result.limit is None and _papers(result):
        yield _say("few-classes", K=f"{num_classes:g}")


def transformer_rate(training: Training) -> Iterator[Notice]:
    """A transformer whose SGD rate is one at which the paper's failed."""
    if training.family == "sgd" and training.lr is not None and training.lr > TRANSFORMER_LR:
        yield _say("transformer-lr", lr=f"{training.lr:g}")


def network_size(training: Training, parameters: int) -> Iterator[Notice]:
    """A network, trained from scratch, that is larger than any that was measured."""
    if training.scenario != "finetune" and parameters > LARGEST:
        millions = [f"{count / 1e6:,.3g} million" for count in (parameters, LARGEST)]
        yield _say("large-network", size=millions[0], largest=millions[1])


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
