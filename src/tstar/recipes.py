"""The table of recipes: for each way of training what to do, and what it gained where.

The rows stand in ``recipes.json``, made from the measured trainings by ``research/recipes.py``. The
first row that matches a case applies; the last matches every case. A row says what to do in
multiples of what is usual, so that asking again after applying it changes nothing. It has one
expectation: what the trainings that matched it gained over the plain model, native heads apart from
widened ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tstar.case import Case


@dataclass(frozen=True)
class Gain:
    """Points of accuracy over the plain model: of ``n`` trainings, 80 % lie from low to high.

    ``gained`` and ``lost`` are the shares that gained and lost more than a point.
    """

    n: int
    median: float
    mean: float
    low: float
    high: float
    gained: float
    lost: float

    def __str__(self) -> str:
        return (
            f"{self.median:+.1f} points (median of {self.n} trainings; 80 % from {self.low:+.1f} "
            f"to {self.high:+.1f}; {self.lost:.0%} lost more than a point)"
        )


@dataclass(frozen=True)
class Row:
    """One recipe.

    ``where`` has lists of values and (lowest, highest) limits of what a case has. The numbers are
    ``norm`` ("batch" or nothing), ``temperature`` ("law", "cn", a number or nothing) and
    ``rate``, times the usual one.
    """

    name: str
    where: Mapping[str, Any]
    do: str
    known: bool = True
    norm: str | None = None
    temperature: str | float | None = None
    rate: float | None = None
    native: Gain | None = None
    widened: Gain | None = None
    source: str = ""

    @property
    def surgery(self) -> bool:
        """Whether the model itself changes; if not, the rate may."""
        return self.norm is not None or self.temperature is not None

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return self.surgery or self.rate is not None

    def meets(self, facts: Mapping[str, Any]) -> bool:
        """Whether a case with these facts belongs to the row.

        Rows that insert a norm were measured on networks without one there, rows that raise the
        rate on trainings with one rate for all layers; they match no others.
        """
        if (self.norm and facts["own_norm"]) or (self.rate and facts["own_rate"]):
            return False
        return all(_within(facts[name], allowed) for name, allowed in self.where.items())


def _within(value: Any, allowed: Any) -> bool:
    if isinstance(allowed, Mapping):
        low, high = allowed.get("from", float("-inf")), allowed.get("below", float("inf"))
        return value is not None and low <= value < high
    return value in allowed if isinstance(allowed, list) else value == allowed


@cache
def rows() -> tuple[Row, ...]:
    """The table, in the order in which it is read."""
    text = Path(__file__).with_name("recipes.json").read_text(encoding="utf-8")
    entries: list[dict[str, Any]] = json.loads(text)["rows"]
    for entry in entries:
        entry |= {n: Gain(**entry[n]) for n in ("native", "widened") if entry.get(n)}
    return tuple(Row(**entry) for entry in entries)


def facts(case: Case) -> dict[str, Any]:
    """What the conditions of a row are about; ``lr`` is in multiples of the usual rate."""
    t = case.training
    return {
        "scenario": t.scenario,
        "family": t.family,
        "tuned": t.tuned,
        "norms": case.norms,
        "kind": case.kind,
        "own_norm": case.own_norm,
        "own_rate": case.head_lr is not None,
        "steps": t.steps,
        "num_classes": case.num_classes,
        "lr": (t.lr or 0.0) / case.usual_lr,
        "epochs": t.epochs or (t.samples and (t.steps or 0) * (t.batch_size or 0) / t.samples),
    }


def find_row(case: Case) -> Row:
    """The row for a case."""
    known = facts(case)
    return next(row for row in rows() if row.meets(known))


# -- print -----------------------------------------------------------------------------------------
def cells(every: Sequence[Row] | None = None) -> Iterator[list[str]]:
    """The table as text, its header first; one line for native heads, one for widened ones."""
    yield ["way of training", "do", "n", "median", "mean", "80 % range", "gained", "lost"]
    for row in rows() if every is None else every:
        yield [row.name, row.do, *_numbers(row.native)]
        if row.widened is not None:
            yield ["widened heads", "", *_numbers(row.widened)]


def _numbers(gain: Gain | None) -> list[str]:
    if gain is None:
        return ["–"] * 6
    points = [f"{gain.median:+.1f}", f"{gain.mean:+.1f}", f"{gain.low:+.1f} to {gain.high:+.1f}"]
    return [str(gain.n), *points, f"{gain.gained:.0%}", f"{gain.lost:.0%}"]
