"""Fits of parts of the runs: one environment at a time, and with one data set left out at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tstar.errors import TstarError, require
from tstar.fitting.curves import Average, Interpolation, curves
from tstar.fitting.fitter import usable_conditions
from tstar.fitting.model import POWER_BOUNDS, Form, coefficient_names, problem
from tstar.fitting.runs import Condition, Metric, conditions, read
from tstar.fitting.search import box, restarted

if TYPE_CHECKING:
    import pandas as pd

_NORMS = {"": "none", "_bn": "batch"}


def per_environment(
    runs: pd.DataFrame | str | os.PathLike[str],
    *,
    metric: Metric = "val",
    average: Average = "mean",
    interpolation: Interpolation = "T",
    restarts: int = 3,
    seed: int = 0,
    skip: bool = False,
) -> pd.DataFrame:
    """α and β of each model × data set, without and with BN: the paper's first coefficient table.

    Accuracies are in %, at the fitted T, mean over M. The last rows are Avg. and S.D., the
    population one as in the paper. What was not run is missing.
    """
    pd = require("pandas", "fit")
    frame = read(runs)
    table: dict[tuple[str, str], dict[str, float]] = {}
    for suffix, norm in _NORMS.items():
        if "norm" in frame.columns and not (frame["norm"] == norm).any():
            continue
        if "norm" not in frame.columns and norm == "none":
            continue
        found, _ = usable_conditions(
            conditions(frame, metric=metric, norm=norm, method="fixed"), skip=skip
        )
        for place in sorted({_environment(c) for c in found}):
            members = [c for c in found if _environment(c) == place]
            try:
                result = refit(members, "none", average, interpolation, restarts, seed)
            except TstarError as error:
                raise TstarError(f"{' · '.join(place)} (norm={norm}): {error}") from error
            row = table.setdefault(place, {})
            row[f"alpha{suffix}"], row[f"beta{suffix}"] = result["theta"]
            row[f"accuracy{suffix}"] = 100 * result["accuracy"]
    if not table:
        raise TstarError(
            f"Runs with norm 'none' or 'batch' must be there, got {len(frame)} others."
        )
    columns = [f"{name}{suffix}" for suffix in _NORMS for name in ("alpha", "beta", "accuracy")]
    rows = pd.DataFrame.from_records(list(table.values())).reindex(columns=columns)
    rows["gain"] = rows["accuracy_bn"] - rows["accuracy"]
    rows.insert(0, "dataset", [place[0] for place in table])
    rows.insert(1, "model", [place[1] for place in table])
    last = [
        {"dataset": "", "model": "Avg.", **rows[[*columns, "gain"]].mean()},
        {"dataset": "", "model": "S.D.", **rows[[*columns, "gain"]].std(ddof=0)},
    ]
    return pd.concat([rows, pd.DataFrame(last)], ignore_index=True)


def cross_validate(
    runs: pd.DataFrame | str | os.PathLike[str],
    correction: str = "csgcn",
    *,
    metric: Metric = "val",
    average: Average = "mean",
    interpolation: Interpolation = "T",
    norm: str | None = "batch",
    method: str | None = "fixed",
    restarts: int = 3,
    seed: int = 0,
    skip: bool = False,
) -> pd.DataFrame:
    """Leave one data set out (the paper's CO): coefficients from the others, judged on the one left out.

    One row a data set: its csg and class count where they are known, the number of conditions, the
    coefficients that the other data sets gave, and at their T the mean accuracy and regret on this
    one (fractions).
    """
    pd = require("pandas", "fit")
    every = conditions(read(runs), metric=metric, norm=norm, method=method)
    found, _ = usable_conditions(every, skip=skip)
    rows = []
    for held, theta in folds(found, correction, average, interpolation, restarts, seed):
        rows.append(
            {
                "dataset": str(held[0].facts["dataset"]),
                "csg": _common(held, "csg"),
                "num_classes": _common(held, "num_classes"),
                "conditions": len(held),
                **dict(zip(coefficient_names(correction), theta, strict=True)),
                **judge(held, correction, theta, average, interpolation),
            }
        )
    return pd.DataFrame(rows)


def folds(
    found: Sequence[Condition],
    correction: str,
    average: Average,
    interpolation: Interpolation,
    restarts: int,
    seed: int,
    form: Form = "sum",
) -> Iterator[tuple[list[Condition], tuple[float, ...]]]:
    """For each data set: its conditions, and the coefficients fitted without them."""
    names = sorted({str(c.facts["dataset"]) for c in found})
    if len(names) < 2:
        raise TstarError(
            f"Cross-validation must have at least two data sets, got {', '.join(names)}; add runs of another."
        )
    for left in names:
        others = [c for c in found if str(c.facts["dataset"]) != left]
        try:
            result = refit(others, correction, average, interpolation, restarts, seed, form)
        except TstarError as error:
            raise TstarError(f"With {left!r} left out: {error}") from error
        yield [c for c in found if str(c.facts["dataset"]) == left], result["theta"]


def refit(
    members: list[Condition],
    correction: str,
    average: Average,
    interpolation: Interpolation,
    restarts: int,
    seed: int,
    form: Form = "sum",
) -> dict[str, Any]:
    """θ, mean accuracy and mean regret of a bare fit, without intervals."""
    task = problem(members, curves(members, average, interpolation), correction, form=form)
    bounds = box(None) if form == "sum" else POWER_BOUNDS
    best = restarted(task, bounds, seed, restarts)[0]
    return {
        "theta": best.theta,
        "regret": best.regret,
        "accuracy": float(task.curves.best.mean()) - best.regret,
    }


def judge(
    held: list[Condition],
    correction: str,
    theta: tuple[float, ...],
    average: Average,
    interpolation: Interpolation,
    form: Form = "sum",
) -> dict[str, float]:
    """Mean accuracy and regret of coefficients on conditions that they were not fitted to."""
    lines = curves(held, average, interpolation)
    task = problem(held, lines, correction, form=form, check=False)
    at = np.array(theta)
    regret = float(task.loss(at))
    return {
        "accuracy": float(lines.best.mean()) - regret,
        "regret": regret,
        "temperature": float(task.temperatures(at).mean()),
    }


def _environment(condition: Condition) -> tuple[str, str]:
    return str(condition.facts["dataset"]), str(condition.facts.get("model") or "")


def _common(members: list[Condition], name: str) -> float:
    """The value that all members share, or NaN."""
    values = {float(c.facts[name]) for c in members if c.facts.get(name) is not None}
    return values.pop() if len(values) == 1 else float("nan")
