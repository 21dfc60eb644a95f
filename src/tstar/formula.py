"""T*, the paper's softmax temperature, and its coefficient sets with their provenance.

    T* = clip(α·sqrt(M) + β + γ·ln csg + δ·ln K, minimum, maximum)

M is the width of the output layer's input (``num_features``), K the number of classes
(``num_classes``) and csg the difficulty of the data. The sets live in ``coefficients.json``; a fit
of your own is saved and loaded in the same form. The paper and nothing else: T for another way of
training is in ``law.py``. Pure Python.
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

from tstar.errors import (
    TstarError,
    guarded,
    number,
    positive,
    positive_csg,
    read_json,
    shown,
    unknown,
    whole,
)
from tstar.text import ShownAsText

if TYPE_CHECKING:
    from torch import nn

FORMAT = 1
VARIANTS = ("base", "csg", "cn", "csgcn")
_NUMBERS = ("alpha", "beta", "gamma", "delta", "minimum", "maximum")
_SYMBOLS = {"num_features": "M", "num_classes": "K", "csg": "csg"}


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
        """The ranges of a quantity that were tried; two that overlap are one."""
        stated = (scope.get(name) for scope in (self.fitted, self.validated))
        tried: list[tuple[float, float]] = []
        for start, end in sorted(filter(None, stated)):
            low, high = number(name, start), number(name, end)
            if tried and low <= tried[-1][1]:
                low, high = tried[-1][0], max(high, tried.pop()[1])
            tried.append((low, high))
        return tried


@dataclass(frozen=True)
class Coefficients:
    """α, β, γ, δ and the bounds of the clip, before M, csg and K are known.

    ``gamma`` (``delta``) is ``None`` in a set that makes no use of csg (of K).
    """

    name: str
    alpha: float
    beta: float
    gamma: float | None = None
    delta: float | None = None
    minimum: float = 1.0
    maximum: float = 512.0
    provenance: Provenance = Provenance()

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
        """Which inputs the set uses: base, csg, cn or csgcn, as in the paper."""
        return choose_variant(self.delta is not None, self.gamma is not None)

    def clip(self, T: float) -> float:
        """T within the set's bounds."""
        return min(max(T, float(self.minimum)), float(self.maximum))

    def to_dict(self) -> dict[str, Any]:
        """The set as plain JSON types."""
        numbers = {n: getattr(self, n) for n in _NUMBERS if getattr(self, n) is not None}
        return {"name": self.name, **numbers, "provenance": asdict(self.provenance)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the set as a JSON file that :meth:`load` reads back unchanged."""
        text = json.dumps({"format": FORMAT, **self.to_dict()}, indent=2, ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Coefficients:
        """The inverse of :meth:`to_dict`."""
        with guarded("A coefficient set must be as Coefficients.save writes it"):
            fields = {name: value for name, value in data.items() if name != "format"}
            origin = Provenance(**fields.pop("provenance", {}))
            for name in _SYMBOLS:
                origin.ranges(name)  # an error now, not later
            return cls(**fields, provenance=origin)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Coefficients:
        """Read a set that :meth:`save` wrote."""
        data = read_json(path, "coefficients")
        if data.get("format", FORMAT) != FORMAT:
            raise TstarError(
                f"{os.fspath(path)!r} has format {shown(data['format'])}, this version reads "
                f"format {FORMAT}; a newer tstar may have written it."
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
def published() -> Mapping[str, Coefficients]:
    """The paper's four sets, by name."""
    text = Path(__file__).with_name("coefficients.json").read_text(encoding="utf-8")
    data = json.loads(text)
    origin = Provenance(**data["provenance"])
    return {n: Coefficients(name=n, provenance=origin, **s) for n, s in data["sets"].items()}


def get(name: str) -> Coefficients:
    """The paper's set of that name."""
    try:
        return published()[name]
    except (KeyError, TypeError):  # TypeError: what has no hash
        raise unknown("variant", name, VARIANTS) from None


def choose_variant(has_classes: bool, has_csg: bool) -> str:
    """The paper's formula with every term whose input is known."""
    return ("csg" * has_csg) + ("cn" * has_classes) or "base"


# -- T ---------------------------------------------------------------------------------------------
class Term(NamedTuple):
    """One summand of T*: what it is called, how it reads, and its value."""

    name: str
    expression: str
    value: float


@dataclass(frozen=True, repr=False)
class Explanation(ShownAsText):
    """T* with its terms one by one, and what to mind.

    ``unclipped`` is the sum of the terms; ``notes`` say what lies outside the range that was tried.
    """

    temperature: float
    unclipped: float
    terms: tuple[Term, ...]
    coefficients: Coefficients
    notes: tuple[str, ...] = ()

    @property
    def variant(self) -> str:
        return self.coefficients.variant

    def __float__(self) -> float:
        return self.temperature

    def __repr__(self) -> str:
        return f"Explanation(T={self.temperature:.4g}, variant={self.variant!r})"

    def __str__(self) -> str:
        lines = [f"T* = {self.temperature:.4g}, with a BatchNorm before the output layer."]
        lines += [f"  {term.expression:<30}{term.value:>+10.4f}" for term in self.terms]
        lines += [f"  {note}" for note in self.notes]
        if self.coefficients in published().values():
            lines.append(
                "  Fitted with SGD at 0.1 over 200 epochs; for another training ask tstar.recommend."
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain JSON types."""
        return {
            **{name: getattr(self, name) for name in ("temperature", "unclipped", "variant")},
            "coefficients": self.coefficients.name,
            "terms": [term._asdict() for term in self.terms],
            "notes": list(self.notes),
        }


def temperature(
    num_features: int | nn.Module,
    num_classes: int | None = None,
    csg: SupportsFloat | None = None,
    *,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
) -> float:
    """T*, the paper's softmax temperature, from the width and what is known of the task.

    Args:
        num_features: M, the width of the output layer's input; or a model, whose M and K are read.
        num_classes: K, the number of classes.
        csg: the cumulative spectral gradient of the data (a number, or what ``tstar.csg`` gives).
        variant: ``"base"``, ``"csg"``, ``"cn"`` or ``"csgcn"``; by default the one that uses all
            that is given.
        coefficients: a set of your own (a record, or the path of its JSON file).

    >>> temperature(512)
    11.6739...
    >>> round(temperature(2048, num_classes=8, csg=3.85), 2)   # ISIC in the paper
    24.89
    """
    known: dict[str, Any] = {"variant": variant, "coefficients": coefficients}
    return explain(num_features, num_classes, csg, **known).temperature


@guarded("T* could not be computed from what was passed")
def explain(
    num_features: int | nn.Module,
    num_classes: int | None = None,
    csg: SupportsFloat | None = None,
    *,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
) -> Explanation:
    """As :func:`temperature`, with the terms one by one.

    >>> print(explain(64, num_classes=10))
    T* = 5.354, with a BatchNorm before the output layer.
      α·sqrt(M) = 0.4051·8             +3.2408
      β                                +6.6560
      δ·ln K = -1.973·ln 10            -4.5430
      Fitted with SGD at 0.1 over 200 epochs; for another training ask tstar.recommend.
    """
    if hasattr(type(num_features), "named_modules"):  # a torch module
        from tstar.output_layer import find_head

        head = find_head(num_features)  # type: ignore[arg-type]
        num_features = head.num_features
        num_classes = head.num_classes if num_classes is None else num_classes
    M = float(whole("num_features", num_features, least=1))
    K = None if num_classes is None else float(whole("num_classes", num_classes, least=2))
    difficulty = None if csg is None else positive_csg(csg)
    if coefficients is not None:
        if variant is not None:
            raise TstarError("variant names a set of the paper; leave it out with coefficients=.")
        chosen = as_coefficients(coefficients)
    else:
        chosen = get(variant or choose_variant(K is not None, difficulty is not None))
    terms = tuple(_terms(chosen, M, K, difficulty))
    total = math.fsum(term.value for term in terms)
    if not math.isfinite(total):
        raise TstarError(f"The coefficients {chosen.name!r} give T = {total}; use smaller numbers.")
    used = {
        "num_features": M,
        "num_classes": K if chosen.delta is not None else None,
        "csg": difficulty if chosen.gamma is not None else None,
    }
    notes = [*_outside(chosen, used)]
    if chosen.clip(total) != total:
        notes.append(f"The formula gives {total:.3g}; T* is clipped to {chosen.clip(total):g}.")
    return Explanation(chosen.clip(total), total, terms, chosen, tuple(notes))


def _terms(c: Coefficients, M: float, K: float | None, csg: float | None) -> Iterator[Term]:
    """α·sqrt(M), β, and if the set has them γ·ln csg and δ·ln K."""
    root = math.sqrt(M)
    yield Term("model", f"α·sqrt(M) = {c.alpha:g}·{root:.4g}", c.alpha * root)
    yield Term("bias", "β", c.beta)
    for what, symbol, factor, name, value in (
        ("difficulty", "γ·ln csg", c.gamma, "csg", csg),
        ("classes", "δ·ln K", c.delta, "num_classes", K),
    ):
        if factor is None:
            continue
        if value is None:
            raise TstarError(
                f"{name} must be given for the coefficients {c.name!r}; pass {name}=…, or another "
                "variant."
            )
        log = math.log(positive(name, value))
        yield Term(what, f"{symbol} = {factor:g}·ln {value:g}", factor * log)


def _outside(c: Coefficients, used: Mapping[str, float | None]) -> Iterator[str]:
    """What lies outside the ranges that were tried."""
    for name, value in used.items():
        ranges = c.provenance.ranges(name)
        if value is None or not ranges or any(low <= value <= high for low, high in ranges):
            continue
        tried = " and ".join(f"{low:g}–{high:g}" for low, high in ranges)
        yield f"{_SYMBOLS[name]} = {value:g} is outside {tried}, the range that was tried."
