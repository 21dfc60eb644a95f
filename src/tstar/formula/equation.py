r"""T* = α·sqrt(M) + β + γ·ln csg + δ·ln K, clipped; and no hotter than the training allows, where that is known.

One decision: the set (:mod:`tstar.formula.choice`), the terms, the training's bound (:mod:`tstar.formula.law`), and where
the evidence speaks against the number, the safe one in its place (:mod:`tstar.formula.cautions`).

Symbols (paper ↔ here): M ↔ ``num_features``, the width of the output layer's input; K (the
paper's cn) ↔ ``num_classes``; csg ↔ ``csg``, the cumulative spectral gradient of the data set.
The logarithm is the natural one. The formula presupposes a BatchNorm just before the output layer.

Reference: Hasegawa & Sakai, "Analytical Softmax Temperature Setting from Feature Dimensions",
the equation of the task correction and the table of globally optimized coefficients.

Pure Python: nothing here imports torch or NumPy.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat

from tstar.errors import TstarError
from tstar.formula import cautions, law, rendering, similar
from tstar.formula.cautions import Notice
from tstar.formula.choice import choose
from tstar.formula.coefficients import Coefficients, get
from tstar.formula.training import Keywords, Training
from tstar.numbers import check_csg, positive_csg, whole

if TYPE_CHECKING:
    from typing_extensions import Unpack

Level = Literal["validated", "extrapolation"]
COUNTED = " (counted as with momentum 0.9 and a rate that falls to zero)"
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


@dataclass(frozen=True)
class Explanation(rendering.Drawn):
    """T with its reasons: the terms of T* one by one, the training's limit, why this formula, and what to mind.

    ``computed`` is what the formula gives; ``temperature`` is lower or higher only where a notice says why. ``leave``: nothing
    like this training was measured, so the model is best left as it is, and ``temperature`` is 1.
    """

    temperature: float
    computed: float
    unclipped: float
    terms: tuple[Term, ...]
    flags: tuple[Flag, ...]
    coefficients: Coefficients
    training: Training
    reason: str
    limit: Limit | None = None
    notices: tuple[Notice, ...] = ()
    leave: bool = False
    evidence: similar.Expectation | None = None

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
        """T* after the clip, before the training's limit."""
        return self.coefficients.clip(self.unclipped)

    def limit_text(self) -> str:
        """What the training allows, in words; empty where it is not known."""
        if self.limit is None:
            return ""
        if self.by_law:
            return self._law_text()
        text = f"allows at most {self.limit.expression} = {self.limit.value:.4g}"
        if not self.limit.decides:
            return f"{text}; T* is within it"
        if self.temperature != self.computed:  # a notice says why it is not what the budget allows
            return f"{text}, lower than T*"
        if self.limit.value < self.computed:
            return f"{text}, and {self.computed:g} is the lowest that is advised"
        return f"{text}, lower than T*: the budget sets T"

    def _law_text(self) -> str:
        assert self.limit is not None
        text = f"asks for {self.limit.expression} = {self.limit.value:.4g}"
        if self.limit.value == self.computed:
            return text
        bound = "lowest" if self.limit.value < self.computed else "highest"
        return f"{text}; {self.computed:g} is the {bound} that is advised"

    @property
    def by_law(self) -> bool:
        """Whether T is the training law's, and the paper's terms stand beside it for comparison."""
        budget = self.coefficients.budget
        return self.limit is not None and budget is not None and budget.is_law

    def _papers(self) -> dict[str, Any]:
        return {
            "unclipped": self.unclipped,
            "clipped": self.clipped,
            "terms": [vars(term) for term in self.terms],
        }

    def describe(self) -> rendering.Description:
        """What there is to say, the verdict first, before it is drawn."""
        return rendering.describe(self, leave=self.leave)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain JSON types."""
        return {
            "verdict": self.describe().verdict,
            "temperature": self.temperature,
            "computed": self.computed,
            "leave": self.leave,
            "variant": self.variant,
            "coefficients": self.coefficients.name,
            "reason": self.reason,
            **({"paper": self._papers()} if self.by_law else self._papers()),
            "flags": [vars(flag) for flag in self.flags],
            "training": self.training.to_dict(),
            "notices": [vars(notice) for notice in self.notices],
            **({} if self.limit is None else {"limit": vars(self.limit)}),
        }


def temperature(
    num_features: int,
    num_classes: int | None = None,
    csg: SupportsFloat | None = None,
    *,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
    **training: Unpack[Keywords],
) -> float:
    """The softmax temperature to train at, from the feature dimension and what is known of the task.

    Args:
        num_features: M, the width of the output layer's input.
        num_classes: K, the number of classes.
        csg: the cumulative spectral gradient of the data set (a number, or what ``tstar.csg`` returns).
        variant: ``"base"``, ``"csg"``, ``"cn"`` or ``"csgcn"`` of the paper; by default the one that the paper's
            tables favor for what is known.
        coefficients: a set of your own (a record, or the path of its JSON file) in place of the paper's.
        training: how you train, in the keywords of :meth:`tstar.formula.training.Training.of`: ``optimizer`` (a
            name, a pair such as ``("sgd", 0.1)``, or a torch optimizer), ``lr``, ``momentum``, ``steps``, ``epochs``
            (with ``samples``), ``batch_size``, ``weight_decay``, ``scheduler``, ``label_smoothing``, ``scenario``
            (``"scratch"`` or ``"finetune"``), ``tuned`` (a search has set rate and decay). With optimizer, learning rate and steps T fits this training; it is 1
            where nothing like it was measured.

    >>> temperature(512)
    11.6739...
    >>> round(temperature(2048, num_classes=8, csg=3.85), 2)   # ISIC in the paper
    24.89
    >>> round(temperature(64, 10, optimizer="sgd", lr=0.1, steps=800, batch_size=64), 2)   # a short training
    2.9
    """
    result = explain(
        num_features, num_classes, csg, variant=variant, coefficients=coefficients, **training
    )
    missing, family = result.training.missing, result.training.family
    partly = 0 < len(missing) < 3 and family in ("sgd", "adam", None)
    if partly and variant is None and coefficients is None:
        raise TstarError(  # a bare number cannot say that it does not fit the training
            f"lr, optimizer and steps must be given together, but {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing; tstar.explain says what can be said without."
        )
    return result.temperature


def explain(
    num_features: int,
    num_classes: int | None = None,
    csg: SupportsFloat | None = None,
    *,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
    **training: Unpack[Keywords],
) -> Explanation:
    """As :func:`temperature`, with the terms one by one, why this formula, and what to be careful about.

    >>> print(explain(64, num_classes=10, variant="cn"))  # doctest: +ELLIPSIS
    Train at T = 5.354, with a BatchNorm before the output layer, if you train as the paper does.
      ...
      α·sqrt(M) = 0.4051·8             +3.2408
      β                                +6.6560
      δ·ln K = -1.973·ln 10            -4.5430
    """
    told = Training.of(**training)
    num_features = whole("num_features", num_features, least=1)
    num_classes = None if num_classes is None else whole("num_classes", num_classes, least=2)
    result = computed(num_features, num_classes, csg, told, variant, coefficients)
    if variant is None and coefficients is None:
        samples = training.get("samples")
        result = judged(result, evidence_for(result, num_features, num_classes, samples))
    return replace(result, notices=cautions.notices(result, num_classes))


def judged(result: Explanation, evidence: similar.Expectation | None) -> Explanation:
    """T where the evidence supports it, else 1."""
    result = replace(result, leave=cautions.leaves(result, evidence), evidence=evidence)
    return replace(result, temperature=cautions.safe_temperature(result))


def evidence_for(
    result: Explanation, num_features: float, num_classes: float | None, samples: int | None = None
) -> similar.Expectation | None:
    """What trainings like this one gained, where a law of the second atlas gives T."""
    budget, told = result.coefficients.budget, result.training
    if budget is None or not budget.is_law or num_classes is None:
        return None
    recipe = similar.recipe_of(told)
    known = None if samples is None else whole("samples", samples, least=1)
    return similar.nearest(told, num_features, num_classes, known, None, recipe)


def computed(
    num_features: int,
    num_classes: int | None,
    csg: SupportsFloat | None,
    told: Training,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
) -> Explanation:
    """What the formula gives, before it is asked whether the evidence supports it."""
    M = float(whole("num_features", num_features, least=1))
    K = None if num_classes is None else float(whole("num_classes", num_classes, least=2))
    known = None if csg is None else check_csg(csg)
    inputs = {"num_features": M, "num_classes": K, "csg": known}
    chosen, reason = choose(inputs["num_classes"], inputs["csg"], told, variant, coefficients)
    terms = _terms(chosen, inputs)
    total = math.fsum(term.value for term in terms)
    if not math.isfinite(total):
        raise TstarError(
            f"The coefficients {chosen.name!r} give {total}; their numbers are too large."
        )
    T = chosen.clip(total)
    limit = _limit(chosen, inputs, told, T)
    if limit is not None and chosen.budget is not None:
        T = law.within(chosen.budget, limit.value, T)
    unused = {"csg": chosen.gamma is None, "num_classes": chosen.delta is None}
    used = {n: v for n, v in inputs.items() if v is not None and not unused.get(n)}
    return Explanation(
        temperature=T,
        computed=T,
        unclipped=total,
        terms=terms,
        flags=(*_flags(chosen, used, limit), *_budget_flags(chosen, limit, told)),
        coefficients=chosen,
        training=told,
        reason=reason,
        limit=limit,
    )


def _limit(
    c: Coefficients, inputs: dict[str, float | None], training: Training, T: float
) -> Limit | None:
    M, K = inputs["num_features"], inputs["num_classes"]
    if c.budget is None or M is None or K is None:
        return None
    value, expression = law.limit(c.budget, M, K, training)
    value = min(value, sys.float_info.max)  # infinity, of a rate of 1e308, is not JSON
    return Limit(expression, value, c.budget.is_law or value < T)


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
        log = math.log(positive_csg(csg))
        terms.append(Term("difficulty", f"γ·ln csg = {c.gamma:g}·ln {csg:g}", c.gamma * log))
    if c.delta is not None:
        if K is None:
            raise TstarError(
                f"num_classes must be given for the coefficients {c.name!r}; pass num_classes=…, or another variant."
            )
        terms.append(Term("classes", f"δ·ln K = {c.delta:g}·ln {K:g}", c.delta * math.log(K)))
    return tuple(terms)


def _flags(c: Coefficients, used: dict[str, float], limit: Limit | None) -> Iterator[Flag]:
    """Quantities outside the evidence; while T* decides, that of the paper's set which it is."""
    paper = c.name == "budget" and limit is not None and not limit.decides
    for name, value in used.items():
        flag = _flag(get("cn") if paper else c, name, value)
        if flag is not None:
            yield flag


def _budget_flags(c: Coefficients, limit: Limit | None, training: Training) -> Iterator[Flag]:
    """A training shorter or longer than any that was measured; of a bound only Adam's, since the paper has long SGD runs."""
    if c.budget is None or limit is None:
        return
    low, high = c.budget.fitted.get(training.family or "", (0.0, math.inf))
    long = c.budget.is_law or training.family == "adam"
    below, above = training.spent < low, long and training.spent > high
    if below or above:
        what = "law" if c.budget.is_law else "bound"
        product = (training.lr or 0.0) * (training.steps or 0)
        same = math.isclose(product, training.spent, rel_tol=1e-9)
        message = (
            f"lr·steps = {training.spent:.3g}{'' if same else COUNTED} is {'below' if below else 'above'} {low:g}–{high:g}, "
            f"where the {what} was measured: it is extrapolating"
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
