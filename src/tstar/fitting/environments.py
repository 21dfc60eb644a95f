"""Fits of parts of the runs: one environment at a time, and with one data set left out at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tstar.curves.conditions import Average, Curve, grids
from tstar.curves.lines import Interpolation, lines
from tstar.curves.reading import Metric, read
from tstar.errors import TstarError, require
from tstar.fitting.fitter import usable_curves
from tstar.fitting.model import POWER_BOUNDS, Form, coefficient_names, problem
from tstar.fitting.search import box, restarted

if TYPE_CHECKING:
    import pandas as pd

_NORMS = {"": "none", "_bn": "batch"}


@dataclass(frozen=True)
class How:
    """How every fit of a table is made."""

    metric: Metric = "val"
    average: Average = "mean"
    interpolation: Interpolation = "lnT"
    restarts: int = 3
    seed: int = 0
    form: Form = "sum"


def per_environment(
    runs: pd.DataFrame | str | os.PathLike[str],
    *,
    metric: Metric = "val",
    average: Average = "mean",
    interpolation: Interpolation = "lnT",
    restarts: int = 3,
    seed: int = 0,
    skip: bool = False,
) -> pd.DataFrame:
    """α and β of each model × data set, without and with BN: the paper's first coefficient table.

    Accuracies are in %, at the fitted T, mean over M. The last rows are Avg. and S.D., the
    population one as in the paper, missing where there is a single environment. What was not run is missing.
    """
    pd = require("pandas", "fit")
    every = grids(read(runs), metric=metric, norm=None)
    how = How(metric, average, interpolation, restarts, seed)
    table: dict[tuple[str, str], dict[str, float]] = {}
    for suffix, norm in _NORMS.items():
        here = [curve for curve in every if curve.facts.get("norm", "batch") == norm]
        if not here:
            continue
        found, _ = usable_curves(here, skip=skip)
        for place in sorted({_environment(c) for c in found}):
            members = [c for c in found if _environment(c) == place]
            try:
                theta, _, accuracy = refit(members, "base", how)
            except TstarError as error:
                raise TstarError(f"{' · '.join(place)} (norm={norm}): {error}") from error
            row = table.setdefault(place, {})
            row[f"alpha{suffix}"], row[f"beta{suffix}"] = theta
            row[f"accuracy{suffix}"] = 100 * accuracy
    if not table:
        raise TstarError(f"No runs with norm 'none' or 'batch' found in {len(every)} curves.")
    columns = [f"{name}{suffix}" for suffix in _NORMS for name in ("alpha", "beta", "accuracy")]
    rows = pd.DataFrame.from_records(list(table.values())).reindex(columns=columns)
    rows["gain"] = rows["accuracy_bn"] - rows["accuracy"]
    rows.insert(0, "dataset", [place[0] for place in table])
    rows.insert(1, "model", [place[1] for place in table])
    numbers = rows[[*columns, "gain"]]
    spread = numbers.std(ddof=0).where(numbers.count() > 1)  # of one number there is none
    last = [
        {"dataset": "", "model": "Avg.", **numbers.mean()},
        {"dataset": "", "model": "S.D.", **spread},
    ]
    return pd.concat([rows, pd.DataFrame(last)], ignore_index=True)


def cross_validate(
    runs: pd.DataFrame | str | os.PathLike[str],
    variant: str = "csgcn",
    *,
    metric: Metric = "val",
    average: Average = "mean",
    interpolation: Interpolation = "lnT",
    norm: str | None = "batch",
    method: str | None = "fixed",
    restarts: int = 3,
    seed: int = 0,
    skip: bool = False,
) -> pd.DataFrame:
    """Leave one data set out (the paper's CO): coefficients from the others, judged on the one left out.

    One row for each data set: its csg and class count where they are known, the number of conditions, the
    coefficients that the other data sets gave, and at their T the mean accuracy and regret on this
    one (fractions).
    """
    pd = require("pandas", "fit")
    how = How(metric, average, interpolation, restarts, seed)
    every = grids(read(runs), metric=metric, norm=norm, method=method)
    found, _ = usable_curves(every, skip=skip)
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
