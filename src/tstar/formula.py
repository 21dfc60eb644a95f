"""T*, the paper's softmax temperature, and its coefficient sets with their provenance.

    T* = clip(α·sqrt(M) + β + γ·ln csg + δ·ln K, minimum, maximum)

M is the width of the output layer's input (``num_features``), K the number of classes
(``num_classes``) and csg the difficulty of the data. The sets live in ``coefficients.json``; a fit
of your own is saved and loaded in the same form. A set with a law (``law.py``) gives T for a way of
training instead. Pure Python. Whether to use T at all is decided in ``advice.py``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat

from tstar.checks import escaped, number, positive, positive_csg, read_json, whole
from tstar.errors import TstarError, guarded, shown, unknown
from tstar.law import BATCH, Law
from tstar.training import Keywords, Training

if TYPE_CHECKING:
    from typing_extensions import Unpack

FORMAT = 1
VARIANTS = ("base", "csg", "cn", "csgcn")  # the paper's sets
_NUMBERS = ("alpha", "beta", "gamma", "delta", "minimum", "maximum")
_EXPLAINED = ("temperature", "unclipped", "reason", "variant")
_SYMBOLS = {"num_features": "M", "num_classes": "K", "csg": "csg"}
# Why a set was taken. The calculator's page says the same.
REASONS = {
    "law": "The training sets T: how far the output layer should travel. csg is not used.",
    "named": "The variant that you asked for.",
    "no-classes": "The number of classes is not known.",
    "no-csg": "csg is not known; of the paper's formulas without it, cn was best in its tables.",
    "outside": "csg = {csg} is outside the paper's {low}–{high}, so K alone corrects T.",
    "scratch": "Of the paper's formulas, cn was best in its tables on training from scratch.",
    "finetune": "Of the paper's formulas, csgcn was best in its tables on fine-tuning.",
    "no-scenario": (
        "The paper's full formula. Its tables favor it for fine-tuning, and cn for training from "
        "scratch: pass the scenario, 'finetune' or 'scratch'."
    ),
}


# -- coefficient sets ------------------------------------------------------------------------------
@dataclass(frozen=True)
class Provenance:
    """What a set was fitted on, what it was only validated on, and where it was published.

    ``fitted`` and ``validated`` hold the (lowest, highest) ``num_features``, ``num_classes`` and
    ``csg``, as far as they are stated, and a ``note``.
    """

    source: str = "unknown"
    fitted: Mapping[str, Any] = field(default_factory=dict)
    validated: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)

    def ranges(self, name: str) -> list[tuple[float, float]]:
        """The ranges of a quantity that were tried."""
        found = (scope.get(name) for scope in (self.fitted, self.validated))
        return [(number(name, low), number(name, high)) for low, high in filter(None, found)]


@dataclass(frozen=True)
class Coefficients:
    """α, β, γ, δ and the bounds of the clip, before M, csg and K are known.

    ``gamma`` (``delta``) is ``None`` in a set that makes no use of csg (of K). With a ``law`` T
    comes from the training.
    """

    name: str
    alpha: float
    beta: float
    gamma: float | None = None
    delta: float | None = None
    minimum: float = 1.0
    maximum: float = 512.0
    provenance: Provenance = Provenance()
    law: Law | None = None

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            if name not in ("gamma", "delta") or getattr(self, name) is not None:
                number(name, getattr(self, name))
        if not 0 < self.minimum <= self.maximum:
            raise TstarError(
                f"0 < minimum <= maximum must hold in coefficient set {self.name!r}, "
                f"got minimum={self.minimum}, maximum={self.maximum}."
            )

    @property
    def variant(self) -> str:
        """Which inputs the set uses: base, csg, cn or csgcn, as in the paper, or ``"law"``."""
        if self.law is not None:
            return "law"
        words = ("csg" * (self.gamma is not None)) + ("cn" * (self.delta is not None))
        return words or "base"

    def clip(self, T: float) -> float:
        """T within the set's bounds."""
        return min(max(T, float(self.minimum)), float(self.maximum))

    def to_dict(self) -> dict[str, Any]:
        """The set as plain JSON types."""
        numbers = {n: getattr(self, n) for n in _NUMBERS if getattr(self, n) is not None}
        law = {} if self.law is None else {"law": self.law.to_dict()}
        return {"name": self.name, **numbers, **law, "provenance": asdict(self.provenance)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the set as a JSON file that :meth:`load` reads back unchanged."""
        text = json.dumps({"format": FORMAT, **self.to_dict()}, indent=2, ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Coefficients:
        """The inverse of :meth:`to_dict`."""
        try:
            given = {name: value for name, value in data.items() if name != "format"}
            old, law = given.pop("budget", None), given.pop("law", None)
            law, origin = law or old, Provenance(**given.pop("provenance", {}))
            for name in _SYMBOLS:
                origin.ranges(name)  # an error now, not later
            law = None if law is None else Law.from_dict(law)
            return cls(**given, provenance=origin, law=law)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise TstarError(
                f"A coefficient set must be as Coefficients.save writes it: {error}"
            ) from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Coefficients:
        """Read a set that :meth:`save` wrote."""
        data = read_json(path, "coefficients")
        if data.get("format", FORMAT) != FORMAT:
            raise TstarError(
                f"{os.fspath(path)!r} has format {data['format']!r}, this version reads format "
                f"{FORMAT}; a newer tstar may have written it."
            )
        return cls.from_dict(data)


def as_coefficients(given: Coefficients | str | os.PathLike[str]) -> Coefficients:
    """A set of the user's own: the record itself, or what its JSON file holds."""
    if isinstance(given, str | os.PathLike):
        return Coefficients.load(given)
    if not isinstance(given, Coefficients):
        raise TstarError(
            f"coefficients must be a Coefficients record or a path to its file, got {shown(given)}."
        )
    return given


@cache
def _shipped() -> Mapping[str, Coefficients]:
    text = Path(__file__).with_name("coefficients.json").read_text(encoding="utf-8")
    data, sets = json.loads(text), {}
    for name, entry in data["sets"].items():
        origin = data["provenance"][entry["provenance"]]
        sets[name] = Coefficients.from_dict({**entry, "name": name, "provenance": origin})
    return sets


@cache
def published() -> Mapping[str, Coefficients]:
    """The paper's four sets, by name."""
    return {name: entry for name, entry in _shipped().items() if entry.law is None}


def get(name: str) -> Coefficients:
    """The set of that name among those that ship with the package."""
    try:
        return _shipped()[variant_name(name)]
    except (KeyError, TypeError):  # TypeError: what has no hash
        raise unknown("variant", name, _shipped()) from None


def variant_name(name: str) -> str:
    """A variant's name; ``"none"`` is an old word for ``"base"``."""
    return "base" if isinstance(name, str) and name == "none" else name


def training_aware() -> Coefficients:
    """The set that knows how you train."""
    return get("law")


def csg_range() -> tuple[float, float]:
    """The lowest and the highest csg for which the paper has data."""
    ends = [end for ends in get("csgcn").provenance.ranges("csg") for end in ends]
    return min(ends), max(ends)


# -- which set -------------------------------------------------------------------------------------
def choose(
    num_classes: float | None,
    csg: float | None,
    training: Training,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
) -> tuple[Coefficients, str]:
    """The set to use for what is known, and why."""
    if coefficients is not None:
        chosen = as_coefficients(coefficients)
        reason = f"Coefficients of your own: {chosen.provenance.source}."
    elif variant is not None:
        chosen, reason = get(variant), REASONS["named"]
    elif training.covered and num_classes is not None:
        chosen, reason = training_aware(), REASONS["law"]
    else:
        name, reason = choose_variant(csg, training.scenario, has_classes=num_classes is not None)
        chosen = get(name)
    if chosen.law is not None and (not training.covered or num_classes is None):
        raise TstarError(
            f"The coefficients {chosen.name!r} need num_classes, an optimizer (SGD or Adam's "
            "family), lr and steps; pass them, or name one of the paper's variants."
        )
    return chosen, reason


def choose_variant(
    csg: float | None, scenario: str | None = None, *, has_classes: bool = True
) -> tuple[str, str]:
    """Which of the paper's variants to use if the training is not known, and why.

    The paper's own tables decide (``tstar.lab.paper``). The csg terms are used only inside the
    paper's range; far below it they are absurd.
    """
    low, high = csg_range()
    outside = csg is not None and not low <= csg <= high
    if not has_classes:
        return ("base" if csg is None or outside else "csg"), REASONS["no-classes"]
    if csg is None:
        return "cn", REASONS["no-csg"]
    if outside:
        return "cn", REASONS["outside"].format(csg=f"{csg:.3g}", low=f"{low:g}", high=f"{high:g}")
    name = "cn" if scenario == "scratch" else "csgcn"
    return name, REASONS[scenario or "no-scenario"]


# -- T ---------------------------------------------------------------------------------------------
class Drawn:
    """Something that a script, a terminal and a notebook show as the same text."""

    def __rich__(self) -> Any:
        from rich.text import Text

        first, *rest = str(self).splitlines()
        return Text.assemble((first, "bold"), *(f"\n{line}" for line in rest))

    def _repr_html_(self) -> str:
        return f"<pre>{escaped(self)}</pre>"


class Term(NamedTuple):
    """One summand of T*: what it is called, how it reads, and its value."""

    name: str
    expression: str
    value: float


@dataclass(frozen=True, repr=False)
class Explanation(Drawn):
    """T with its reasons: the terms of T* one by one, why this formula, and what to mind.

    ``unclipped`` is the sum of the terms; with a law they stand there for comparison.
    """

    temperature: float
    unclipped: float
    terms: tuple[Term, ...]
    coefficients: Coefficients
    training: Training
    reason: str
    notes: tuple[str, ...] = ()

    @property
    def variant(self) -> str:
        return self.coefficients.variant

    def __float__(self) -> float:
        return self.temperature

    def __repr__(self) -> str:
        return f"Explanation(T={self.temperature:.4g}, variant={self.variant!r})"

    def __str__(self) -> str:
        """T first, then why, then the terms, or the law."""
        lines = [f"T = {self.temperature:.4g}, with a BatchNorm before the output layer."]
        lines += [f"  {text}" for text in (self.reason, *self.notes)]
        if self.coefficients.law is None:
            lines += [f"  {term.expression:<30}{term.value:>+10.4f}" for term in self.terms]
        else:
            paper = self.coefficients.clip(self.unclipped)
            lines.append(f"  T = {self.coefficients.law.expression(self.training)}.")
            lines.append(f"  The paper's T*, for 200 epochs at 0.1: {paper:.4g}.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain JSON types."""
        told = {name: getattr(self, name) for name in _EXPLAINED}
        told |= {"coefficients": self.coefficients.name, "training": self.training.to_dict()}
        return told | {"terms": [t._asdict() for t in self.terms], "notes": list(self.notes)}


def temperature(
    num_features: int,
    num_classes: int | None = None,
    csg: SupportsFloat | None = None,
    *,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
    **training: Unpack[Keywords],
) -> float:
    """The softmax temperature to train at, from the width and what is known of the task.

    Args:
        num_features: M, the width of the output layer's input.
        num_classes: K, the number of classes.
        csg: the cumulative spectral gradient of the data (a number, or what ``tstar.csg`` gives).
        variant: ``"base"``, ``"csg"``, ``"cn"`` or ``"csgcn"`` of the paper; by default the one
            that the paper's tables favor for what is known.
        coefficients: a set of your own (a record, or the path of its JSON file).
        training: how you train, in the keywords of :meth:`tstar.training.Training.of`. With
            optimizer, ``lr`` and ``steps`` T fits this training.

    Returns:
        T. ``tstar.recommend`` says whether to use it.

    >>> temperature(512)
    11.6739...
    >>> round(temperature(2048, num_classes=8, csg=3.85), 2)   # ISIC in the paper
    24.89
    >>> round(temperature(64, 10, optimizer="sgd", lr=0.1, steps=800, batch_size=64), 2)
    2.9
    """
    result = explain(
        num_features, num_classes, csg, variant=variant, coefficients=coefficients, **training
    )
    missing, family = [*result.training.missing], result.training.family
    told = len(missing) < 3 and family != "other" and variant is None and coefficients is None
    missing += ["num_classes"] if num_classes is None else []
    if told and missing:
        raise TstarError(  # a bare number cannot say that it does not fit the training
            f"num_classes, lr, optimizer and steps must be given together, but "
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing; "
            "tstar.explain says what can be said without."
        )
    return result.temperature


@guarded("The formula stopped in what you passed")
def explain(
    num_features: int,
    num_classes: int | None = None,
    csg: SupportsFloat | None = None,
    *,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
    **training: Unpack[Keywords],
) -> Explanation:
    """As :func:`temperature`, with the terms one by one, why this formula, and what to mind.

    >>> print(explain(64, num_classes=10, variant="cn"))
    T = 5.354, with a BatchNorm before the output layer.
      The variant that you asked for.
      This T is for the paper's training (SGD at 0.1, 200 epochs); pass optimizer, lr, steps too.
      α·sqrt(M) = 0.4051·8             +3.2408
      β                                +6.6560
      δ·ln K = -1.973·ln 10            -4.5430
    """
    told = Training.of(**training)
    M = float(whole("num_features", num_features, least=1))
    K = None if num_classes is None else float(whole("num_classes", num_classes, least=2))
    known = None if csg is None else positive("csg", csg, zero=True)
    chosen, reason = choose(K, known, told, variant, coefficients)
    terms = tuple(_terms(chosen, M, K, known))
    total = math.fsum(term.value for term in terms)
    if not math.isfinite(total):
        raise TstarError(f"The coefficients {chosen.name!r} give {total}: too large numbers.")
    T = chosen.clip(total)
    if chosen.law is not None and K is not None:
        T = chosen.law.temperature(M, K, told)
    used = {
        "num_features": M,
        "csg": known if chosen.gamma is not None else None,
        "num_classes": K if chosen.delta is not None else None,
    }
    notes = tuple(_notes(chosen, used, told, total))
    return Explanation(T, total, terms, chosen, told, reason, notes)


def _terms(c: Coefficients, M: float, K: float | None, csg: float | None) -> Iterator[Term]:
    """α·sqrt(M), β, and if the set has them γ·ln csg and δ·ln K."""
    root = math.sqrt(M)
    yield Term("model", f"α·sqrt(M) = {c.alpha:g}·{root:.4g}", c.alpha * root)
    yield Term("bias", "β", c.beta)
    for what, symbol, factor, name, value in (
        ("difficulty", "γ·ln csg", c.gamma, "csg", csg),
        ("classes", "δ·ln K", c.delta, "num_classes", K),
    ):
        if factor is not None and value is None:
            raise TstarError(
                f"{name} must be given for the coefficients {c.name!r}; pass {name}=…, or another "
                "variant."
            )
        if factor is not None and value is not None:
            log = math.log(positive_csg(value) if name == "csg" else value)
            yield Term(what, f"{symbol} = {factor:g}·ln {value:g}", factor * log)


def _notes(
    c: Coefficients, used: Mapping[str, float | None], training: Training, total: float
) -> Iterator[str]:
    """What the numbers cannot say: ranges, the clip, and a training that the set does not know."""
    for name, value in used.items():
        ranges = c.provenance.ranges(name)
        if value is None or not ranges or any(low <= value <= high for low, high in ranges):
            continue
        known = " and ".join(f"{low:g}–{high:g}" for low, high in ranges)
        yield f"{_SYMBOLS[name]} = {value:g} is outside {known}, the range that was tried."
    if c.law is not None:
        if training.family == "sgd" and training.batch_size is None:
            yield f"This T is for batches of {BATCH}; pass batch_size for yours."
        return
    if c.clip(total) != total:
        yield f"The formula gives {total:.3g}, outside its bounds; T is {c.clip(total):g}."
    if c not in published().values():
        return
    if training.family == "other":
        yield f"Nobody has measured T with {training.optimizer}; try it first: tstar check."
    elif training.covered:
        way = "pass num_classes" if used["num_classes"] is None else "leave the variant out"
        yield f"This T ignores how you train; {way} for one that fits."
    else:
        missing = ", ".join(training.missing)
        yield f"This T is for the paper's training (SGD at 0.1, 200 epochs); pass {missing} too."
