"""recommend: model, data and training in, a recipe out. Read → decide → describe.

``facts.py`` makes one frozen record of what is known. ``decide`` is pure: facts and evidence in,
recipe and reasons out; whether to leave a model as it is is decided there and nowhere else.
``Recommendation`` prints the recipe, goes to JSON, and applies it. The surgery itself belongs in
``surgery.py``, the numbers in ``formula.py``, ``law.py`` and ``evidence.py``.
"""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from tstar.errors import TstarError, guarded, unknown
from tstar.evidence import ACTIONS, MOST, SIMPLE, Expectation, Facts, Measured, expect, weights
from tstar.evidence import measured as all_measured
from tstar.formula import Coefficients, Drawn, Explanation, as_coefficients, csg_range, explain, get
from tstar.training import Keywords, Training

if TYPE_CHECKING:
    from torch import nn
    from typing_extensions import Unpack

    from tstar.output_layer import Head
    from tstar.samples import Samples

FASTER, SLOWER, DECAY = 3.0, 0.333, 3.0  # times the rate, and times the decay, as measured
# Which actions raise what; not above so many times what trainings like it started from.
RAISED = {"lr": ("rate", "bn_rate", "bn_rate_decay"), "weight_decay": ("decay", "bn_rate_decay")}
BEYOND = 1.5
HEAD_LR = {"scratch": 10.0, "finetune": 100.0}
HIGHEST = 0.01  # rate of a new output layer that was measured with Adam in fine-tuning
PAPER_LR = {"scratch": 0.1, "finetune": 0.01}
TRANSFORMER_LR = 0.03  # SGD above it made the paper's transformers fail
SURE = 0.5  # standard errors that a gain must be above zero
MIN_SUPPORT = 0.5  # of an action, in all; below it nothing like the training was measured
MIN_WEIGHT = 0.1  # of the training most like yours; below it likewise
MIN_SHARE = 0.2  # of the best supported action's support; an action with less is passed over
FEW_STEPS = 100
_SOFT = ("SoftTargetCrossEntropy", "KLDivLoss", "kl_div")
WORDS = {
    "leave": "no change",
    "rate": "3 times the rate",
    "slower": "a third of the rate",
    "decay": "3 times the weight decay",
    "head_lr": "a higher rate for the output layer",
    "bn": "a BatchNorm and T",
    "bn1": "a BatchNorm",
    "bn_rate": "a BatchNorm and T at 3 times the rate",
    "bn_rate_decay": "a BatchNorm and T at 3 times the rate and decay",
    "paper_cn": "a BatchNorm and the paper's T",
    "paper_csgcn": "a BatchNorm and the paper's T for such data",
    "named": "a BatchNorm and the T that you asked for",
}


# -- decide ----------------------------------------------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What to do, as numbers to use, and why.

    ``action`` is one of ``evidence.ACTIONS``, ``"leave"``, or ``"named"`` for a T that the user
    asked for. ``expectations`` has what is known of each possible action, the chosen one first.
    """

    action: str
    temperature: float
    norm: str | None
    lr: float | None
    weight_decay: float | None
    head_lr: float | None
    reasons: tuple[str, ...]
    expectations: tuple[Expectation, ...] = ()
    measured: bool = True


def decide(facts: Facts, evidence: Sequence[Measured] | None = None) -> Recipe:
    """The recipe for a training, from trainings like it.

    An action counts if its mean gain is above zero by half its standard error, and its median is
    not below zero; the best is that with the highest mean less its error. A BatchNorm and T must
    also beat every simpler action in the trainings that had both.
    """
    rows = weights(facts, all_measured() if evidence is None else evidence)
    near = bool(rows) and rows[0][0] > MIN_WEIGHT
    every, allowed = [expect(rows, action) for action in ACTIONS if near], {*_possible(facts)}
    possible = [e for e in every if e.action in allowed and _tried(facts.training, e)]
    enough = max(MIN_SUPPORT, MIN_SHARE * max((e.support for e in possible), default=0.0))
    known = sorted((e for e in possible if e.support >= enough), key=_sure, reverse=True)
    good = [e for e in known if e.mean > SURE * e.error and e.median >= 0]
    simple = [e for e in good if e.action in SIMPLE]
    best = next((e for e in good if e.action not in SIMPLE), None)
    level = [e for e in simple if best is None or not _beats(rows, best, e)]
    chosen = level[0] if level else best
    if chosen is not None:
        others = tuple(e for e in known if e is not chosen)
        other = best if level else next(iter(simple), None)
        return _recipe(facts, chosen.action, _why(chosen, other), (chosen, *others))
    measured = any(e.support >= MIN_SUPPORT for e in every)
    if known:
        reason = "In the trainings most like yours no change gained beyond its error."
    elif measured:
        reason = "What was tried in trainings like yours does not apply to yours."
    elif facts.training.family == "other":
        reason = f"{facts.training.optimizer} was not measured: it is neither SGD nor like Adam."
    else:
        reason = "Nothing like your training was measured."
    return replace(_recipe(facts, "leave", reason, tuple(known)), measured=measured)


def _possible(facts: Facts) -> Iterator[str]:
    """The actions that this training allows."""
    t = facts.training
    sgd_transformer = facts.kind == "transformer" and t.family == "sgd"
    too_fast = sgd_transformer and FASTER * (t.lr or 0.0) > TRANSFORMER_LR
    rate = not (t.tuned or too_fast)
    norm = facts.insertable and (facts.batch or t.batch_size) != 1
    # The paper's T knows no rate: it is for one like the paper's, at its batch size of 128.
    like = 128 * (t.lr or 0.0) / (t.batch_size or 128) / PAPER_LR[t.scenario or "scratch"]
    paper = norm and (t.family != "sgd" or 0.25 <= like <= 4)
    low, high = csg_range()
    csg = facts.csg is not None and low <= facts.csg <= high
    allowed = {
        "rate": rate,
        "slower": not t.tuned,
        "decay": not t.tuned and bool(t.weight_decay),
        "head_lr": facts.norms != "frozen",
        "bn": norm,
        "bn1": norm and not facts.normed,
        "bn_rate": norm and rate,
        "bn_rate_decay": norm and rate and bool(t.weight_decay),
        "paper_cn": paper,
        "paper_csgcn": paper and csg,
    }
    return (action for action in ACTIONS if allowed[action])


def _tried(training: Training, e: Expectation) -> bool:
    """Whether trainings like it started from about as high a rate or decay, if it is raised."""
    for name, actions in RAISED.items():
        tried = max((getattr(row.facts.training, name) or 0.0 for row in e.near), default=0.0)
        if e.action in actions and (getattr(training, name) or 0.0) > BEYOND * tried:
            return False
    return True


def _sure(e: Expectation) -> float:
    """What actions are ranked by: what is little known ranks lower."""
    return e.mean - e.error


def _beats(rows: Sequence[tuple[float, Measured]], best: Expectation, simple: Expectation) -> bool:
    """Whether surgery gained more than a simpler action did, in the trainings that had both."""
    pairs = [
        (w, replace(row, gains={"more": row.gains[best.action] - row.gains[simple.action]}))
        for w, row in rows
        if best.action in row.gains and simple.action in row.gains
    ]
    more = expect(pairs, "more")
    return (
        more.mean > SURE * more.error
        if more.support >= MIN_SUPPORT
        else _sure(best) > _sure(simple)
    )


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _why(chosen: Expectation, other: Expectation | None) -> str:
    text = f"{_capital(WORDS[chosen.action])} gained accuracy on average in trainings like yours"
    if other is not None:
        simple = chosen.action in SIMPLE
        text += f"; {WORDS[other.action]} {'did not gain more' if simple else 'alone gained less'}"
    return f"{text}."


def _recipe(facts: Facts, action: str, reason: str, known: tuple[Expectation, ...] = ()) -> Recipe:
    """The numbers of an action."""
    t = facts.training
    lr = _times(t.lr, FASTER if action in RAISED["lr"] else SLOWER if action == "slower" else 1.0)
    T = 1.0
    if action.startswith("paper_"):
        variant = action.removeprefix("paper_")
        T = explain(facts.num_features, facts.num_classes, facts.csg, variant=variant).temperature
    elif action in ("bn", "bn_rate", "bn_rate_decay"):
        told = replace(t, lr=lr)
        T = explain(facts.num_features, facts.num_classes, optimizer=told).temperature
        if t.family == "sgd" and facts.pretrained:
            T = max(T, 1.0)  # below 1 fine-tuned transformers lost 6 and 13 points
    return Recipe(
        action=action,
        temperature=T,
        norm="batch" if action.startswith(("bn", "paper")) and not facts.normed else None,
        lr=lr,
        weight_decay=_times(t.weight_decay, DECAY if action in RAISED["weight_decay"] else 1.0),
        head_lr=_head_rate(lr, t) if action == "head_lr" else None,
        reasons=(reason,),
        expectations=known,
    )


def _head_rate(lr: float | None, t: Training) -> float | None:
    """The rate of the output layer alone; in fine-tuning with Adam none above what was measured."""
    rate = _times(lr, HEAD_LR[t.scenario or "scratch"])
    if lr is None or rate is None or t.scenario != "finetune" or t.family == "sgd":
        return rate
    return max(lr, min(rate, HIGHEST))


def _times(value: float | None, factor: float) -> float | None:
    """A rate such as 0.3, not 0.30000000000000004."""
    return None if value is None else float(f"{factor * value:.12g}")


# -- read ------------------------------------------------------------------------------------------
@guarded("tstar.recommend stopped in what you passed")
def recommend(
    model: nn.Module,
    data: Any = None,
    *,
    num_classes: int | None = None,
    csg: Any = None,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
    norm: str | None = "batch",
    loss: Any = None,
    head: Any = None,
    example_input: Any = None,
    domain: str | None = None,
    train_accuracy: float | None = None,
    **training: Unpack[Keywords],
) -> Recommendation:
    """How to train this model: rate, decay, BatchNorm and temperature, or to leave it as it is.

    It changes nothing. What is not told is taken to be usual, and the advice says so.

    Args:
        model: the classifier; M and K are read from its output layer.
        data: the training set, in any form that :func:`tstar.csg` takes. Its length counts the
            steps of ``epochs``; its difficulty is measured only if the paper's formula is used.
        num_classes: K, if the output layer will be replaced later.
        csg: the difficulty of the data, if it is known already.
        variant: a formula of the paper, to use its T.
        coefficients: a fit of your own, to use its T.
        norm: ``"batch"``, or ``None`` if no norm may be inserted.
        loss: the loss that you train with; refused unless a softmax follows the logits.
        head: the output layer's path, or several, if the model has several.
        example_input: an input that the model accepts, if the output layer is not found without.
        domain: ``"image"``, ``"text"``, ``"signal"`` or ``"table"``; read from the model.
        train_accuracy: of the plain model at the end of training, from 0 to 1, if you know it;
            below 0.99 it does not fit its training set, and regularization helps less.
        training: how you train, in the keywords of :meth:`tstar.training.Training.of`.

    Returns:
        The advice. ``print`` it, ``advice.apply(model, optimizer)`` it.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    >>> advice = recommend(net, optimizer="sgd", lr=0.01, steps=800, batch_size=64, samples=2000)
    >>> advice.action, advice.norm, advice.lr
    ('bn_rate', 'batch', 0.03)
    """
    from tstar.facts import read_facts
    from tstar.samples import count_classes

    if norm not in (None, "batch"):
        raise unknown("norm", norm, ("batch",))
    softened = getattr(loss, "label_smoothing", getattr(loss, "smoothing", None))
    softened = softened or getattr(loss, "keywords", {}).get("label_smoothing")
    if softened and not training.get("label_smoothing"):
        training["label_smoothing"] = softened
    known: dict[str, Any] = {"csg": csg, "domain": domain, "train_accuracy": train_accuracy}
    known |= {"head": head, "example_input": example_input, "loss": loss}
    facts, heads, source = read_facts(model, data, training, num_classes=num_classes, **known)
    facts = replace(facts, insertable=norm is not None)
    count, notes = None if source is None else count_classes(source), []
    if count not in (None, facts.num_classes):
        notes.append(f"The data have {count} classes, the output layer {facts.num_classes}.")
    if getattr(loss, "__name__", type(loss).__name__) in _SOFT:
        notes.append("soft targets (mixup, distillation): only hard labels were measured.")
    facts, recipe, why = _choose(facts, source, variant, coefficients, notes)
    known = {"heads": heads, "notes": tuple(notes), "explanation": why}
    return Recommendation(**vars(recipe), facts=facts, **known)


def _choose(
    facts: Facts, source: Samples | None, variant: Any, coefficients: Any, notes: list[str]
) -> tuple[Facts, Recipe, Explanation | None]:
    """The recipe; the difficulty of the data is measured only if a formula uses it."""
    if variant is None and coefficients is None:
        recipe = decide(facts)
        if all(e.action != "paper_cn" for e in recipe.expectations):  # csgcn needs csg
            return facts, recipe, None
        facts = _with_csg(facts, source, notes)
        return facts, decide(facts), None
    own = None if coefficients is None else as_coefficients(coefficients)
    if (get(variant or "csgcn") if own is None else own).gamma is not None:
        facts = _with_csg(facts, source, notes)
    M, K = facts.num_features, facts.num_classes
    names = {"variant": variant, "coefficients": coefficients}
    why = explain(M, K, facts.csg, optimizer=facts.training, **names)
    kept = _recipe(facts, "leave", why.reason)
    norm = "batch" if facts.insertable and not facts.normed else None
    return facts, replace(kept, action="named", temperature=why.temperature, norm=norm), why


def _with_csg(facts: Facts, source: Samples | None, notes: list[str]) -> Facts:
    """The facts with the difficulty of the data, if it can be measured."""
    from tstar.difficulty import csg

    if source is None or facts.csg is not None:
        return facts
    try:
        return replace(facts, csg=float(csg(source)))
    except TstarError as error:
        notes.append(f"The difficulty of the data could not be measured: {error}")
        return facts


# -- describe --------------------------------------------------------------------------------------
_NAMES = ("action", "leave", "measured", "temperature", "norm", "lr", "weight_decay", "head_lr")


@dataclass(frozen=True, kw_only=True, repr=False)
class Recommendation(Recipe, Drawn):
    """A recipe for one model: what to do, what to expect, and what to be careful about.

    ``print(advice)`` says it in four lines; ``advice.details()`` says the rest. ``lr``,
    ``weight_decay``, ``head_lr``, ``temperature`` and ``norm`` are there to use.

    Args:
        facts: what it is about, the usual filled in for what was not told.
        heads: the output layers.
        notes: what else to know, in sentences.
        explanation: T with its terms, if you asked for a variant or coefficients of your own.
    """

    facts: Facts
    heads: tuple[Head, ...]
    notes: tuple[str, ...] = ()
    explanation: Explanation | None = None

    @property
    def leave(self) -> bool:
        """Whether the advice is to change nothing."""
        return self.action == "leave"

    @property
    def surgery(self) -> bool:
        """Whether the model itself changes; if not, rate and decay may."""
        return self.norm is not None or self.temperature != 1

    @property
    def head(self) -> Head | list[str]:
        """The output layer, or the paths of several."""
        return self.heads[0] if len(self.heads) == 1 else [head.path for head in self.heads]

    @property
    def training(self) -> Training:
        """How you train, as told or assumed; the rate to use is ``lr``."""
        return self.facts.training

    @property
    def expectation(self) -> Expectation | None:
        """What the chosen action gained in similar trainings; ``None`` if that is not known."""
        if self.action in ("leave", "named") or not self.expectations:
            return None
        return self.expectations[0]

    def __float__(self) -> float:
        return self.temperature

    def __repr__(self) -> str:
        numbers = f"T={self.temperature:.4g}, norm={self.norm!r}, lr={self.lr}"
        numbers += "" if self.head_lr is None else f", head_lr={self.head_lr}"
        return f"Recommendation({self.action!r}, {numbers}, weight_decay={self.weight_decay})"

    def __str__(self) -> str:
        """Four lines: what to do, what to expect, the main risk, how to check."""
        lines = {
            "Do this": self._do(),
            "Expect": self._expect(),
            "Main risk": next(self._risks()),
            "Check": self._check(),
        }
        return "\n".join(f"{name}: {said}" for name, said in lines.items())

    def details(self) -> str:
        """Everything else: reasons, what was assumed, what each action gained, the formula."""
        _, *risks = self._risks()
        lines = [*self.reasons, *map(_capital, risks), *self._facts()]
        for e in self.expectations:
            lines.append(f"{_capital(WORDS[e.action])}: {_points(e)}, from {e.source}.")
        lines = [fill(line, 100, subsequent_indent="    ") for line in lines]
        return "\n".join([*lines, *([str(self.explanation)] if self.explanation else [])])

    def _facts(self) -> Iterator[str]:
        """What the advice is about, in words."""
        f, t = self.facts, self.training
        norms = "frozen layers" if f.norms == "frozen" else f"{f.norms or 'unknown norms'} inside"
        what = [kind for kind in (f.domain, f.kind, norms.replace("-", " ")) if kind]
        what += [f"{f.parameters:,} parameters"] if f.parameters else []
        yield f"Your model: {', '.join(what)}; M = {f.num_features}, K = {f.num_classes}."
        how = [f"{t.optimizer}, lr {t.lr:g}, weight decay {t.weight_decay:g}"]
        how += [f"{t.steps:,} steps of {t.batch_size:,} samples"]
        how += [f"{f.samples:,} training samples"] if f.samples else []
        how += ["fine-tuning" if f.pretrained else "from scratch"]
        how += [f"label smoothing {t.label_smoothing:g}"] if t.label_smoothing else []
        how += ["rate and decay tuned"] if t.tuned else []
        yield f"Your training: {', '.join(how)}."
        if f.assumed:
            yield f"Not told, and taken to be usual: {', '.join(f.assumed)}."
        if f.csg is not None:
            yield f"The difficulty of the data (csg): {f.csg:.3g}."

    def _do(self) -> str:
        what = []
        if self.norm:
            paths = ", ".join(repr(head.path) for head in self.heads)
            what.append(f"insert a BatchNorm before {paths}")
        if self.temperature != 1:
            what.append(f"divide the logits by T = {self.temperature:.4g}")
        what = what or ["leave the model as it is"]
        for name in ("lr", "weight_decay"):
            value, before = getattr(self, name), getattr(self.training, name)
            guessed = self._guessed(name)
            if value is not None and value != before:
                what.append(f"set {name} to {value:g} (in place of {before:g})")
            elif value is not None and name == "lr":  # a decay that stays goes unsaid
                what.append(f"{'take' if guessed else 'keep'} {name} {value:g}")
        if self.head_lr is not None:
            what.append(f"train the output layer at lr {self.head_lr:g}")
        code = "." if self.leave else ": model = advice.apply(model, optimizer)"
        return ", ".join(what) + code

    def _guessed(self, name: str) -> bool:
        return any(word.startswith(f"{name}=") for word in self.facts.assumed)

    def _expect(self) -> str:
        if self.expectation is not None:
            plain = f"over your plain model at lr {self.training.lr:g}"
            return f"{_points(self.expectation)} {plain}, from {self.expectation.source}."
        if self.action == "named":
            return "not known for a T that you name."
        if not self.measured:
            return f"not known. {self.reasons[0]}"
        text = f"the accuracy that you have. {self.reasons[0]}"
        if self.expectations:
            best = self.expectations[0]
            text += f" The best, {WORDS[best.action]}, gave {_points(best)} in {best.source}."
        return text

    def _risks(self) -> Iterator[str]:
        """What to be careful about, the gravest first; there is always one."""
        t, norm, chance = self.training, self.norm is not None, self.facts.fit_chance
        yield from self.notes
        if not self.measured:
            yield "a gain that is missed: only a pilot on your own model can tell."
        if self.heads[0].dense and not self.leave:
            yield "a label for each pixel or token: only one label per sample was measured."
        if self.expectation is not None and self.expectation.median > MOST:
            yield "in these runs the plain model did badly; if yours does not, expect little."
        if norm and (batch := self.facts.batch or t.batch_size or 8) < 8:
            yield f"batches of {batch} samples give the BatchNorm noisy statistics."
        if not self.leave and t.steps is not None and t.steps < FEW_STEPS:
            yield f"{t.steps} steps are few: hardly anything so short was measured."
        if self.facts.kind == "transformer" and t.family == "sgd" and (t.lr or 0) > TRANSFORMER_LR:
            yield (
                f"a transformer at SGD lr {t.lr:g}: in the paper ViT-B/16 fell to 5 % at lr 0.1 "
                "and T* of csgcn, and reached 54 % at 0.01."
            )
        if self.temperature != 1 and t.label_smoothing:
            yield "label smoothing and T together lost part of the gain in the paper's table."
        guessed = [word for word in self.facts.assumed if not word.startswith("weight_decay=")]
        if guessed:
            yield f"this assumes {', '.join(guessed)}; tell recommend if yours differs."
        if norm and chance is not None and chance < 0.8:
            yield (
                f"if the plain model does not fit its training set ({100 - 100 * chance:.0f} % "
                "likely), this can cost a point; pass train_accuracy=… if you know it."
            )
        elif norm:
            yield "batches that are not shuffled: the BatchNorm needs several classes in each."
        elif not self.leave:
            yield "another rate or decay can fail; a seed alone moves accuracy by a point or two."
        if self.leave and self.measured and not guessed:
            yield "none: nothing changes."

    def _check(self) -> str:
        t = self.training
        names = ("optimizer", "lr", "weight_decay", "batch_size", "steps")
        told = {name: getattr(t, name) for name in names}
        told |= {"scenario": t.scenario} if self.facts.pretrained else {}
        if t.optimizer not in ("sgd", "adam", "adamw"):  # the pilot's own, or a class of yours
            told["optimizer"] = "adamw" if t.family == "adam" else f"your.package:{t.optimizer}"
        words = ", ".join(f"{n}={v!r}" for n, v in told.items() if v is not None)
        call = f"tstar.lab.check(make_model, data, {words}, budget=10)"
        what = "the usual changes" if self.leave else "it"
        made = "make_model is a function that builds your model"
        return f"{call} compares {what} with your plain model in 10 minutes; {made}."

    def to_dict(self) -> dict[str, Any]:
        """The advice as plain JSON types."""
        expected, why = self.expectation, self.explanation
        return {
            "format": 1,
            "text": str(self).splitlines(),
            **{name: getattr(self, name) for name in _NAMES},
            **{name: getattr(self.facts, name) for name in ("num_features", "num_classes", "csg")},
            "head": [head.path for head in self.heads],
            "training": self.training.to_dict(),
            **{name: list(getattr(self, name)) for name in ("reasons", "notes")},
            "assumed": list(self.facts.assumed),
            "expectation": None if expected is None else expected.to_dict(),
            "alternatives": [e.to_dict() for e in self.expectations if e is not expected],
            "explanation": None if why is None else why.to_dict(),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the advice as JSON."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    def card(self, difference: float | None = None) -> str:
        """A paragraph for a model card; ``difference``: the logits' largest one after folding."""
        parts = [f"Trained with {self.training.optimizer} as tstar advised: {WORDS[self.action]}."]
        if self.surgery:
            norm = "a BatchNorm stood before the output layer and " if self.norm else ""
            parts.append(f"In training {norm}logits were divided by T = {self.temperature:.4g}.")
            exact = "" if difference is None else f"; logits changed by at most {difference:.1g}"
            parts.append(f"Folding put this into the output layer's weights{exact}.")
        own = "" if self.head_lr is None else f" ({self.head_lr:g} for the output layer)"
        parts.append(f"Learning rate {self.lr:g}{own}, weight decay {self.weight_decay:g}.")
        if (e := self.expectation) is not None:
            parts.append(f"Expected over the plain model: {_points(e)}, from {e.source}.")
        return " ".join(parts)

    # -- apply -------------------------------------------------------------------------------------

    def apply(
        self, model: nn.Module, optimizer: Any = None, scheduler: Any = None, **options: Any
    ) -> nn.Module:
        """The model as advised, changed in place, and the optimizer at the advised rate and decay.

        Args:
            model: the model that the advice is for. If it is tempered as advised already, only the
                optimizer is set.
            optimizer: a torch optimizer that holds its parameters. The new norm joins the group of
                the output layer, and every group keeps its ratio to that one.
            scheduler: of that optimizer, or a list, so that it goes on from the new rate.
            options: of :func:`tstar.temper`.
        """
        from tstar.groups import set_rates
        from tstar.output_layer import tempered_heads
        from tstar.surgery import temper

        done = [float(head.temperature) for head in tempered_heads(model).values()]
        if not done or any(not math.isclose(T, self.temperature, rel_tol=1e-6) for T in done):
            told = {"head": self.head, "inplace": True, **options}
            model = temper(model, self, optimizer=optimizer, **told)
        t, numbers = self.training, (self.lr, self.weight_decay, self.head_lr)
        if optimizer is not None and not (self.leave and numbers == (t.lr, t.weight_decay, None)):
            kept = self.weight_decay == t.weight_decay and self._guessed("weight_decay")
            advice = replace(self, weight_decay=None) if kept else self  # a guess stays a guess
            set_rates(advice, model, optimizer, scheduler)
        return model

    def hf_args(self, args: Any) -> Any:
        """A copy of transformers' ``TrainingArguments`` with the advised rate and decay."""
        if self.head_lr is not None:
            raise TstarError(
                "TrainingArguments has one rate, and the advice has another for the output layer: "
                "use AdviceCallback(advice) of tstar.lab.callbacks.transformers."
            )
        made = copy.copy(args)
        made.learning_rate, made.weight_decay = self.lr, self.weight_decay
        return made

    def enqueue(self, study: Any) -> dict[str, tuple[float, float]]:
        """Put the recipe first into an Optuna study; gives a range around each number.

        Suggest them by these names: ``trial.suggest_float("lr", *ranges["lr"], log=True)``.
        """
        names = ("lr", "head_lr", "weight_decay", *(["temperature"] if self.surgery else []))
        told = {name: getattr(self, name) for name in names if getattr(self, name)}
        study.enqueue_trial(dict(told))
        return {name: (value / 10, value * 10) for name, value in told.items()}


def _points(e: Expectation) -> str:
    typical = min(max(min(e.mean, e.median), e.low), e.high)  # whichever promises less
    return f"{typical:+.1f} points of accuracy (80 % range {e.low:+.1f} to {e.high:+.1f})"
