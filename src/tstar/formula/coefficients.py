"""Sets of temperature determination coefficients, each with where it comes from.

A set is four numbers (α, β, γ, δ), the bounds of the clip, and its provenance; one that knows how you
train has a budget too. The paper's four sets and ours live in ``coefficients.json`` beside this file;
a fit of your own is saved and loaded in the same form, so that it drops in wherever the paper's do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tstar.errors import TstarError, shown, unknown
from tstar.formula.law import Budget, read_range
from tstar.numbers import number

FORMAT = 1
VARIANTS = ("base", "csg", "cn", "csgcn")  # the paper's sets
_NUMBERS = ("alpha", "beta", "gamma", "delta", "minimum", "maximum")
_QUANTITIES = ("num_features", "num_classes", "csg")


@dataclass(frozen=True)
class Scope:
    """The range of each quantity that some evidence covers; ``None`` where it is not stated."""

    num_features: tuple[float, float] | None = None
    num_classes: tuple[float, float] | None = None
    csg: tuple[float, float] | None = None
    note: str = ""

    def contains(self, quantity: str, value: float) -> bool | None:
        """Whether ``value`` lies in the range of ``quantity``; ``None`` where no range is stated."""
        bounds: tuple[float, float] | None = getattr(self, quantity)
        return None if bounds is None else bounds[0] <= value <= bounds[1]


@dataclass(frozen=True)
class Provenance:
    """What a set was fitted on, what it was only validated on, and where it was published."""

    source: str = "unknown"
    fitted: Scope = Scope()
    validated: Scope = Scope()
    training: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Coefficients:
    """T* = clip(α·sqrt(M) + β + γ·ln csg + δ·ln K, minimum, maximum), before M, csg and K are known.

    ``gamma`` (``delta``) is ``None`` in a set that makes no use of csg (of K). With a ``budget`` T is
    the lower of T* and what the training allows (:mod:`tstar.formula.law`).
    """

    name: str
    alpha: float
    beta: float
    gamma: float | None = None
    delta: float | None = None
    minimum: float = 1.0
    maximum: float = 512.0
    provenance: Provenance = Provenance()
    budget: Budget | None = None

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            value = getattr(self, name)
            if value is None and name in ("gamma", "delta"):
                continue
            number(name, value)
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise TstarError(f"budget must be a Budget record, got {self.budget!r}.")
        if not 0 < self.minimum <= self.maximum:
            raise TstarError(
                f"0 < minimum <= maximum must hold in coefficient set {self.name!r}, "
                f"got minimum={self.minimum}, maximum={self.maximum}."
            )

    @property
    def variant(self) -> str:
        """Which inputs the set uses, in the paper's words: base, csg, cn or csgcn; or ``"budget"``, ``"speed"``."""
        if self.budget is not None:
            return "speed" if self.budget.is_law else "budget"
        return {(False, False): "base", (True, False): "csg", (False, True): "cn"}.get(
            (self.gamma is not None, self.delta is not None), "csgcn"
        )

    def clip(self, T: float) -> float:
        """T within the set's bounds."""
        return min(max(T, float(self.minimum)), float(self.maximum))

    def to_dict(self) -> dict[str, Any]:
        """The set as plain JSON types."""
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        origin = self.provenance
        return {
            "name": self.name,
            **{name: value for name, value in numbers.items() if value is not None},
            **({} if self.budget is None else {"budget": self.budget.to_dict()}),
            "provenance": {
                "source": origin.source,
                "fitted": _scope_to_dict(origin.fitted),
                "validated": _scope_to_dict(origin.validated),
                "training": dict(origin.training),
            },
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the set as a JSON file that :meth:`load` reads back unchanged."""
        text = json.dumps({"format": FORMAT, **self.to_dict()}, indent=2, ensure_ascii=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Coefficients:
        """The inverse of :meth:`to_dict`."""
        missing = [name for name in ("name", "alpha", "beta") if name not in data]
        if missing:
            raise TstarError(f"A coefficient set needs {', '.join(missing)}; got {sorted(data)}.")
        known = ("name", "provenance", "budget", *_NUMBERS)
        strange = sorted(set(data) - {"format", *known})
        if strange:
            raise unknown("field of a coefficient set", strange[0], known)
        origin = data.get("provenance", {})
        training = origin.get("training", {}) if isinstance(origin, Mapping) else None
        if not isinstance(origin, Mapping) or not isinstance(training, Mapping):
            raise TstarError(f"provenance must be a table of fields, got {origin!r}.")
        return cls(
            name=str(data["name"]),
            **{name: data[name] for name in _NUMBERS if name in data},
            provenance=Provenance(
                source=str(origin.get("source", "unknown")),
                fitted=_scope_from_dict(origin.get("fitted", {})),
                validated=_scope_from_dict(origin.get("validated", {})),
                training=training,
            ),
            budget=Budget.from_dict(data["budget"]) if data.get("budget") is not None else None,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Coefficients:
        """Read a set that :meth:`save` wrote."""
        name = os.fspath(path)
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise TstarError(
                f"The coefficient file {name!r} does not exist; check the path."
            ) from None
        # ValueError: what is no text, no JSON, or a number of 5,000 digits.
        except (OSError, ValueError, RecursionError) as error:
            raise TstarError(f"{name!r} is not a JSON file of coefficients: {error}.") from error
        if not isinstance(data, dict):
            raise TstarError(f"{name!r} must hold one JSON object, got {type(data).__name__}.")
        if data.get("format", FORMAT) != FORMAT:
            raise TstarError(
                f"{name!r} has format {data['format']!r}, this version reads format {FORMAT}; "
                "a newer tstar may have written it."
            )
        try:
            return cls.from_dict(data)
        except TstarError as error:
            raise TstarError(f"{name!r} holds no usable coefficients. {error}") from error


def as_coefficients(given: Coefficients | str | os.PathLike[str]) -> Coefficients:
    """A set of the user's own: the record itself, or what its JSON file holds."""
    if isinstance(given, Coefficients):
        return given
    if not isinstance(given, str | os.PathLike):
        raise TstarError(
            f"coefficients must be a Coefficients record or a path to its JSON file, got {shown(given)}."
        )
    return Coefficients.load(given)


def _scope_to_dict(scope: Scope) -> dict[str, Any]:
    return {n: list(v) if isinstance(v, tuple) else v for n, v in vars(scope).items() if v}


def _scope_from_dict(data: object) -> Scope:
    if not isinstance(data, Mapping):
        raise TstarError(f"The scope of a coefficient set must be a table of ranges, got {data!r}.")
    ranges = {name: read_range(name, data[name]) for name in _QUANTITIES if name in data}
    return Scope(**ranges, note=str(data.get("note", "")))


@cache
def _shipped() -> Mapping[str, Coefficients]:
    data = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    origins = data["provenance"]
    return {
        name: Coefficients.from_dict(
            {**entry, "name": name, "provenance": origins[entry["provenance"]]}
        )
        for name, entry in data["sets"].items()
    }


@cache
def published() -> Mapping[str, Coefficients]:
    """The paper's four sets, by name."""
    return {name: entry for name, entry in _shipped().items() if entry.budget is None}


def get(name: str) -> Coefficients:
    """The set of that name among those that ship with the package."""
    try:
        return _shipped()[name]
    except (KeyError, TypeError):  # TypeError: what has no hash
        raise unknown("variant", name, _shipped()) from None


def is_shipped(given: Coefficients) -> bool:
    """Whether a set is one of those that ship with the package, and not one that has such a name."""
    return given in _shipped().values()


def training_aware() -> Coefficients:
    """The set that knows how you train: the law of the second atlas."""
    return get("speed")
