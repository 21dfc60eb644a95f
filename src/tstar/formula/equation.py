r"""T* = α·sqrt(M) + β + γ·ln csg + δ·ln K, clipped; and no hotter than the training allows, where that is known.

The second bound is :mod:`tstar.formula.law`.

Symbols (paper ↔ here): M ↔ ``num_features``, the width of the output layer's input; K (the
paper's cn) ↔ ``num_classes``; csg ↔ ``csg``, the cumulative spectral gradient of the data set.
The logarithm is the natural one. The formula presupposes a BatchNorm just before the output layer.

Reference: Hasegawa & Sakai, "Analytical Softmax Temperature Setting from Feature Dimensions",
the equation of the task correction and the table of globally optimised coefficients.

Pure Python: nothing here imports torch or NumPy.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, SupportsFloat

from tstar.errors import TstarError
from tstar.formula import law
from tstar.formula.coefficients import Coefficients, as_coefficients, get
from tstar.formula.law import MOMENTUM, Training
from tstar.numbers import number, positive_csg, whole

Level = Literal["validated", "extrapolation"]
_SYMBOLS = {"num_features": "M", "num_classes": "K", "csg": "csg"}


@dataclass(frozen=True)
class Term:
    """One summand of T*: what it is called, how it reads, and its value."""

    name: str
    expression: str
    value: float


@dataclass(frozen=True)
class Flag:
    """A quantity outside the range that the coefficients were fitted on.

    ``level`` is ``"validated"`` (the paper checked the formula there) or ``"extrapolation"``.
    """

    level: Level
    quantity: str
    value: float
    message: str


@dataclass(frozen=True)
class Limit:
    """The highest T that the training can learn at, how it reads, and whether it is lower than T*."""

    expression: str
    value: float
    decides: bool
    training: Training


@dataclass(frozen=True)
class Explanation:
    """T with its reasons: the terms of T* one by one, what the clip did, the budget's limit, and every flag."""

    temperature: float
    unclipped: float
    terms: tuple[Term, ...]
    flags: tuple[Flag, ...]
    coefficients: Coefficients
    limit: Limit | None = None

    @property
    def variant(self) -> str:
        return self.coefficients.variant

    @property
    def clipped(self) -> Literal["minimum", "maximum"] | None:
        """Which bound of the clip acted, if any."""
        if self.unclipped < self.coefficients.minimum:
            return "minimum"
        return "maximum" if self.unclipped > self.coefficients.maximum else None

    @property
    def bound(self) -> float:
        """T* after the clip, before the budget."""
        return self.coefficients.clip(self.unclipped)

    def limit_text(self) -> str:
        """What the training allows, in words; empty where it is not known."""
        if self.limit is None:
            return ""
        text = f"at most {self.limit.expression} = {self.limit.value:.4g}"
        if not self.limit.decides:
            return f"{text}: there is room for T*"
        if self.limit.value < self.temperature:
            return f"{text}, and {self.temperature:g} is the lowest that is advised: it decides"
        return f"{text}, lower than T*: it decides"

    def __float__(self) -> float:
        return self.temperature

    def __str__(self) -> str:
        symbol = "T*" if self.limit is None else "T"
        lines = [f"{symbol} = {self.temperature:.4g}   (coefficients: {self.coefficients.name})"]
        lines += [f"  {term.expression:<28}{term.value:>+10.4f}" for term in self.terms]
        if self.clipped:
            lines.append(
                f"  {self.unclipped:.4g} was clipped to the {self.clipped}, {self.bound:g}"
            )
        if self.limit is not None:
            lines += [f"  budget: {self.limit_text()}"]
        lines += [f"  {flag.level}: {flag.message}" for flag in self.flags]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain JSON types."""
        return {
            "temperature": self.temperature,
            "unclipped": self.unclipped,
            "clipped": self.clipped,
            "variant": self.variant,
            "coefficients": self.coefficients.name,
            "terms": [vars(term) for term in self.terms],
            "flags": [vars(flag) for flag in self.flags],
            **({} if self.limit is None else {"limit": asdict(self.limit)}),
        }


def temperature(
    num_features: int,
    num_classes: int | None = None,
    csg: SupportsFloat | None = None,
    *,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
    lr: float | None = None,
    optimizer: str | None = None,
    steps: int | None = None,
    momentum: float = MOMENTUM,
) -> float:
    """The softmax temperature to train at, from the feature dimension and what is known of the task.

    Args:
        num_features: M, the width of the output layer's input.
        num_classes: K, the number of classes.
        csg: the cumulative spectral gradient of the data set (a number, or what ``tstar.csg`` returns).
        variant: ``"base"``, ``"csg"``, ``"cn"`` or ``"csgcn"`` of the paper; by default the richest
            one that the arguments allow.
        coefficients: a set of your own (a record, or the path of its JSON file) in place of the paper's.
        lr: the highest learning rate; with ``optimizer`` and ``steps`` the answer is no hotter than what
            this training can learn at (the set ``"budget"``), which the paper's formula does not know.
        optimizer: ``"sgd"``, ``"adam"``, ``"adamw"`` or a relative.
        steps: the number of optimiser steps of the whole training.
        momentum: of SGD.

    >>> temperature(512)
    11.6739...
    >>> round(temperature(2048, num_classes=8, csg=3.85), 2)   # ISIC in the paper
    24.89
    >>> temperature(64, 10, lr=0.1, optimizer="sgd", steps=50_000) == temperature(64, 10)
    True
    >>> temperature(64, 10, lr=0.01, optimizer="sgd", steps=800) < 3   # too few steps for that
    True
    """
    return explain(
        num_features,
        num_classes,
        csg,
        variant=variant,
        coefficients=coefficients,
        lr=lr,
        optimizer=optimizer,
        steps=steps,
        momentum=momentum,
    ).temperature


def explain(
    num_features: int,
    num_classes: int | None = None,
    csg: SupportsFloat | None = None,
    *,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
    lr: float | None = None,
    optimizer: str | None = None,
    steps: int | None = None,
    momentum: float = MOMENTUM,
) -> Explanation:
    """As :func:`temperature`, with the terms one by one, the clip, and the flags.

    >>> print(explain(64, num_classes=10))
    T* = 5.354   (coefficients: cn)
      α·sqrt(M) = 0.4051·8           +3.2408
      β                              +6.6560
      δ·ln K = -1.973·ln 10          -4.5430
    """
    inputs = {
        "num_features": whole("num_features", num_features, least=1),
        "num_classes": None if num_classes is None else whole("num_classes", num_classes, least=2),
        "csg": None if csg is None else positive_csg(csg),
    }
    training = _training(lr, optimizer, steps, momentum)
    chosen = _choose(inputs, variant, coefficients, aware=training is not None)
    terms = _terms(chosen, inputs)
    total = math.fsum(term.value for term in terms)
    used = {
        name: value for name, value in inputs.items() if value is not None and _uses(chosen, name)
    }
    T = chosen.clip(total)
    limit = _limit(chosen, inputs, training, T)
    return Explanation(
        temperature=T if limit is None else _within(chosen, limit, T),
        unclipped=total,
        terms=terms,
        flags=(*_flags(chosen, used, limit), *_budget_flags(chosen, limit)),
        coefficients=chosen,
        limit=limit,
    )


def _training(lr: object, optimizer: object, steps: object, momentum: object) -> Training | None:
    """How one means to train, where all of it is known; an error where only a part is."""
    given = {"lr": lr, "optimizer": optimizer, "steps": steps}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == len(given):
        return None
    if missing:
        raise TstarError(
            f"lr, optimizer and steps must be given together, but {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing."
        )
    if not isinstance(optimizer, str):
        raise TstarError(
            f"optimizer must be a name such as 'sgd', got {optimizer!r}; tstar.recommend reads a torch optimiser."
        )
    family = law.family(optimizer)
    if family is None:
        raise TstarError(
            f"optimizer must be SGD or of Adam's family, where the budget was measured, got {optimizer!r}; "
            "leave lr, optimizer and steps out for the paper's formula."
        )
    rate, mu = number("lr", lr), number("momentum", momentum)
    if rate <= 0:
        raise TstarError(f"lr > 0 must hold, but got lr={rate}.")
    if not 0 <= mu < 1:
        raise TstarError(f"0 <= momentum < 1 must hold, but got momentum={mu}.")
    return Training(family, rate, int(whole("steps", steps, least=1)), mu)


def _limit(
    c: Coefficients, inputs: dict[str, float | None], training: Training | None, T: float
) -> Limit | None:
    if c.budget is None or training is None:
        return None
    M, K = inputs["num_features"], inputs["num_classes"]
    assert M is not None
    assert K is not None
    value, expression = law.limit(c.budget, M, K, training)
    return Limit(expression, value, value < T, training)


def _within(c: Coefficients, limit: Limit, T: float) -> float:
    """The lower of T* and the limit, but nothing that was not tried."""
    assert c.budget is not None
    return max(min(T, limit.value), min(T, c.budget.minimum))


def _terms(c: Coefficients, inputs: dict[str, float | None]) -> tuple[Term, ...]:
    """α·sqrt(M), β, and where the set has them γ·ln csg and δ·ln K."""
    M, K, csg = inputs["num_features"], inputs["num_classes"], inputs["csg"]
    assert M is not None
    terms = [
        Term("model", f"α·sqrt(M) = {c.alpha:g}·{math.sqrt(M):.4g}", c.alpha * math.sqrt(M)),
        Term("bias", "β", c.beta),
    ]
    if c.gamma is not None:
        if csg is None:
            raise TstarError(
                f"csg must be given for the coefficients {c.name!r}; pass csg=…, or another variant."
            )
        terms.append(
            Term("difficulty", f"γ·ln csg = {c.gamma:g}·ln {csg:g}", c.gamma * math.log(csg))
        )
    if c.delta is not None:
        if K is None:
            raise TstarError(
                f"num_classes must be given for the coefficients {c.name!r}; pass num_classes=…, or another variant."
            )
        terms.append(Term("classes", f"δ·ln K = {c.delta:g}·ln {K:g}", c.delta * math.log(K)))
    return tuple(terms)


def _choose(
    inputs: dict[str, float | None],
    variant: str | None,
    coefficients: Coefficients | str | os.PathLike[str] | None,
    *,
    aware: bool,
) -> Coefficients:
    """The set to use: the caller's own, the variant named, or the richest that the inputs allow."""
    if coefficients is not None:
        chosen = as_coefficients(coefficients)
        if variant is not None and variant != chosen.variant:
            raise TstarError(
                f"variant and coefficients must agree, got variant={variant!r} and a set of "
                f"variant {chosen.variant!r}; leave one of them out."
            )
    elif variant is not None:
        chosen = get(variant)
    elif aware:
        chosen = get("budget")
    else:
        known = ("csg" if inputs["csg"] is not None else "") + (
            "cn" if inputs["num_classes"] is not None else ""
        )
        chosen = get(known or "base")
    if aware and chosen.budget is None:
        raise TstarError(
            f"The coefficients {chosen.name!r} must have a budget for lr, optimizer and steps to count, but have "
            "none; leave these out, or the variant."
        )
    if chosen.budget is not None and not aware:
        raise TstarError(
            f"lr, optimizer and steps must be given for the coefficients {chosen.name!r}; pass them, or name one "
            "of the paper's variants."
        )
    if chosen.budget is not None and inputs["num_classes"] is None:
        raise TstarError(
            f"num_classes must be given for the coefficients {chosen.name!r}; pass num_classes=…."
        )
    return chosen


def _uses(c: Coefficients, quantity: str) -> bool:
    return {"num_features": True, "csg": c.gamma is not None, "num_classes": c.delta is not None}[
        quantity
    ]


def _flags(c: Coefficients, used: dict[str, float], limit: Limit | None) -> Iterator[Flag]:
    """Quantities outside the evidence; while T* decides, that of the paper's set which it is."""
    paper = c.name == "budget" and limit is not None and not limit.decides
    for name, value in used.items():
        flag = _flag(get("cn") if paper else c, name, value)
        if flag is not None:
            yield flag


def _budget_flags(c: Coefficients, limit: Limit | None) -> Iterator[Flag]:
    """A training shorter than any that was measured; for Adam a longer one too, which the paper has not tried."""
    if c.budget is None or limit is None:
        return
    training = limit.training
    low, high = c.budget.fitted.get(training.family, (0.0, math.inf))
    below, above = training.spent < low, training.family == "adam" and training.spent > high
    if below or above:
        message = (
            f"lr·steps = {training.spent:.3g} is {'below' if below else 'above'} {low:g}–{high:g}, where the budget "
            "was measured: it is extrapolating"
        )
        yield Flag("extrapolation", "lr·steps", training.spent, message)


def _flag(c: Coefficients, quantity: str, value: float) -> Flag | None:
    """``None`` inside the fitted range, else a flag that says how far outside the evidence we are."""
    origin = c.provenance
    if origin.fitted.contains(quantity, value) in (True, None):
        return None
    symbol = _SYMBOLS[quantity]
    fitted = "–".join(f"{bound:g}" for bound in getattr(origin.fitted, quantity))
    if origin.validated.contains(quantity, value):
        message = f"{symbol} = {value:g} is outside {fitted}, where the coefficients were fitted, but was validated"
        return Flag("validated", quantity, value, message)
    checked = getattr(origin.validated, quantity)
    where = f" and {'–'.join(f'{bound:g}' for bound in checked)} (validated)" if checked else ""
    message = (
        f"{symbol} = {value:g} is outside {fitted} (fitted){where}: the formula is extrapolating"
    )
    return Flag("extrapolation", quantity, value, message)


__all__ = ["Explanation", "Flag", "Term", "explain", "temperature"]
