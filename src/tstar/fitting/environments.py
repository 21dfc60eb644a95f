"""Fits of parts of the runs: one environment at a time, and with one data set left out at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from tstar.curves.conditions import Average, Curve, grids, without
from tstar.curves.lines import Interpolation, lines
from tstar.curves.reading import Metric, Runs, read
from tstar.errors import TstarError, require
from tstar.fitting.fitter import usable_curves
from tstar.fitting.model import POWER_BOUNDS, Form, coefficient_names, problem
from tstar.fitting.search import box, restarted

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Unpack

_NORMS = {"": "none", "_bn": "batch"}
_APART = "not compared, since no condition and seed was run without BN and with it"


class Keywords(TypedDict, total=False):
    """The keywords of :class:`How` that every table takes, and ``skip``, as for :func:`tstar.fit`."""

    metric: Metric
    average: Average
    interpolation: Interpolation
    restarts: int
    seed: int
    skip: bool


@dataclass(frozen=True)
class How:
    """How every fit of a table is made; ``skip`` leaves out conditions that cannot be used."""

    metric: Metric = "val"
    average: Average = "mean"
    interpolation: Interpolation = "lnT"
    restarts: int = 3
    seed: int = 0
    form: Form = "sum"
    skip: bool = False

    def usable(self, runs: Runs) -> tuple[tuple[Curve, ...], tuple[str, ...]]:
        """The curves of the runs that a fit can use, and which were left out and why."""
        return usable_curves(grids(read(runs), metric=self.metric), skip=self.skip)


def per_environment(runs: Runs, **keywords: Unpack[Keywords]) -> pd.DataFrame:
    """α and β of each model × data set, without and with BN: the paper's first coefficient table.

    Accuracies are in %, at the fitted T, mean over M. Where both sides were run, both are fitted to the conditions and
    seeds that they share, so that the gain compares like with like; ``conditions`` counts them. The last rows are Avg.
    and S.D. of the environments that have both sides (of all, where none has), the population one as in the paper,
    missing where there is a single environment. What was not run is missing; ``attrs["notes"]`` says what
    ``skip=True`` left out: conditions, and environments of one width, which cannot tell α and β apart.
    """
    pd = require("pandas", "fit")
    how = How(**keywords)
    grid = grids(read(runs), metric=how.metric, norm=None)
    known = [c for c in grid if c.facts.get("norm", "batch") in _NORMS.values()]
    if not known:
        raise TstarError(f"No runs with norm 'none' or 'batch' found in {len(grid)} curves.")
    every, left_out = usable_curves(known, skip=how.skip)
    notes = list(left_out)
    table: dict[tuple[str, str], dict[str, float]] = {}
    for place in sorted({_environment(c) for c in every}):
        row = _row(place, [c for c in every if _environment(c) == place], how, notes)
        if row:
            table[place] = row
    if not table:
        raise TstarError("No environment could be fitted:\n" + "\n".join(notes))
    places = sorted(table, key=lambda place: "alpha" not in table[place])  # what is compared first
    columns = [f"{name}{suffix}" for suffix in _NORMS for name in ("alpha", "beta", "accuracy")]
    rows = pd.DataFrame.from_records([table[place] for place in places])
    rows = rows.reindex(columns=["conditions", *columns])
    rows["gain"] = rows["accuracy_bn"] - rows["accuracy"]
    rows.insert(0, "dataset", [place[0] for place in places])
    rows.insert(1, "model", [place[1] for place in places])
    both = rows["gain"].notna()
    numbers = rows.loc[both if both.any() else rows.index, [*columns, "gain"]]
    spread = numbers.std(ddof=0).where(numbers.count() > 1)  # of one number there is none
    last = [
        {"dataset": "", "model": "Avg.", **numbers.mean()},
        {"dataset": "", "model": "S.D.", **spread},
    ]
    result = pd.concat([rows, pd.DataFrame(last)], ignore_index=True)
    result.attrs |= {"notes": notes, "averaged": len(numbers)}
    return result


def _row(
    place: tuple[str, str], members: Sequence[Curve], how: How, notes: list[str]
) -> dict[str, float]:
    """One environment: each side that can be fitted, on what both sides have where there are two."""
    sides = {
        suffix: [c for c in members if c.facts.get("norm", "batch") == norm]
        for suffix, norm in _NORMS.items()
    }
    if all(sides.values()):
        shared = _matched(sides[""], sides["_bn"])
        try:
            if shared[""]:
                return _sides(shared, how)
            notes.append(f"{' · '.join(place)} (norm=none): {_APART}")
        except TstarError as error:
            notes.append(f"{' · '.join(place)} (norm=none): {error}")
            if not how.skip:
                raise TstarError(notes[-1]) from error
        sides[""] = []
    try:
        return _sides({suffix: found for suffix, found in sides.items() if found}, how)
    except TstarError as error:
        (norm,) = (_NORMS[suffix] for suffix, found in sides.items() if found)
        notes.append(f"{' · '.join(place)} (norm={norm}): {error}")
        if not how.skip:
            raise TstarError(notes[-1]) from error
    return {}


def _matched(plain: Sequence[Curve], bn: Sequence[Curve]) -> dict[str, list[Curve]]:
    """The conditions that were run without BN and with it, each with the seeds of both."""
    other = {without(c.facts, "norm"): c for c in plain}
    found: dict[str, list[Curve]] = {suffix: [] for suffix in _NORMS}
    for curve in bn:
        pair = other.get(without(curve.facts, "norm"))
        seeds = set() if pair is None else set(pair.seeds) & set(curve.seeds)
        if pair is None or not seeds:
            continue
        both = (pair.only(seeds), curve.only(seeds))
        if len(usable_curves(both, skip=True)[0]) == len(both):
            found[""].append(both[0])
            found["_bn"].append(both[1])
    return found


def _sides(sides: Mapping[str, Sequence[Curve]], how: How) -> dict[str, float]:
    row: dict[str, float] = {}
    for suffix, members in sides.items():
        theta, _, accuracy = refit(members, "base", how)
        row |= {f"alpha{suffix}": theta[0], f"beta{suffix}": theta[1]}
        row |= {f"accuracy{suffix}": 100 * accuracy, "conditions": len(members)}
    return row


def cross_validate(
    runs: Runs, variant: str = "csgcn", **keywords: Unpack[Keywords]
) -> pd.DataFrame:
    """Leave one data set out (the paper's CO): coefficients from the others, judged on the one left out.

    One row for each data set: its csg and class count where they are known, the number of conditions, the
    coefficients that the other data sets gave, and at their T the mean accuracy and regret on this
    one (fractions).
    """
    pd = require("pandas", "fit")
    how = How(**keywords)
    found, _ = how.usable(runs)
    rows = []
    for held, theta in folds(found, variant, how):
        rows.append(
            {
                "dataset": str(held[0].facts["dataset"]),
                "csg": _common(held, "csg"),
                "num_classes": _common(held, "num_classes"),
                "conditions": len(held),
                **dict(zip(coefficient_names(variant), theta, strict=True)),
                **judge(held, variant, theta, how),
            }
        )
    return pd.DataFrame(rows)


def folds(
    found: Sequence[Curve], variant: str, how: How
) -> Iterator[tuple[list[Curve], tuple[float, ...]]]:
    """For each data set: its conditions, and the coefficients fitted without them."""
    names = sorted({str(c.facts["dataset"]) for c in found})
    if len(names) < 2:
        raise TstarError(
            f"Cross-validation needs at least two data sets, got {', '.join(names)}; add runs of another."
        )
    for left in names:
        others = [c for c in found if str(c.facts["dataset"]) != left]
        try:
            theta, _, _ = refit(others, variant, how)
        except TstarError as error:
            raise TstarError(f"With {left!r} left out: {error}") from error
        yield [c for c in found if str(c.facts["dataset"]) == left], theta


def refit(
    members: Sequence[Curve], variant: str, how: How
) -> tuple[tuple[float, ...], float, float]:
    """θ, mean regret and mean accuracy of a bare fit, without intervals."""
    return _refit(tuple(members), variant, how)


@lru_cache(maxsize=32)  # two tables of a report have the same global fits
def _refit(
    members: tuple[Curve, ...], variant: str, how: How
) -> tuple[tuple[float, ...], float, float]:
    curves = lines(members, how.metric, how.average, how.interpolation)
    task = problem(members, curves, variant, form=how.form)
    bounds = box(None) if how.form == "sum" else POWER_BOUNDS
    best = restarted(task, bounds, how.seed, how.restarts)[0]
    return best.theta, best.regret, float(curves.best.mean()) - best.regret


def judge(
    held: Sequence[Curve], variant: str, theta: tuple[float, ...], how: How
) -> dict[str, float]:
    """Mean accuracy and regret of coefficients on conditions that they were not fitted to."""
    curves = lines(held, how.metric, how.average, how.interpolation)
    task = problem(held, curves, variant, form=how.form, check=False)
    at = np.array(theta)
    regret = float(task.loss(at))
    return {
        "accuracy": float(curves.best.mean()) - regret,
        "regret": regret,
        "temperature": float(task.temperatures(at).mean()),
    }


def _environment(curve: Curve) -> tuple[str, str]:
    return str(curve.facts["dataset"]), str(curve.facts.get("model") or "")


def _common(members: Sequence[Curve], name: str) -> float:
    """The value that all members share, or NaN."""
    values: set[Any] = {c.facts[name] for c in members if c.facts.get(name) is not None}
    return float(values.pop()) if len(values) == 1 else float("nan")
