"""Corrections side by side, as in the paper's tables; and the alternatives to its procedure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tstar.errors import TstarError, require
from tstar.fitting.curves import Average, Interpolation
from tstar.fitting.environments import cross_validate, folds, judge, refit
from tstar.fitting.fitter import usable_conditions
from tstar.fitting.model import Form, coefficient_names
from tstar.fitting.runs import Metric, conditions, read

if TYPE_CHECKING:
    import pandas as pd

_VARIANTS = ("base", "csg", "cn", "csgcn")
_FORMS: tuple[tuple[str, Form, Interpolation], ...] = (
    ("sum, linear in T (the paper's)", "sum", "T"),
    ("sum, linear in ln T", "sum", "lnT"),
    ("power law, linear in T", "power", "T"),
    ("power law, linear in ln T", "power", "lnT"),
)
_YARDSTICKS: dict[str, Interpolation] = {"regret_in_T": "T", "regret_in_lnT": "lnT"}


def correction_table(
    runs: pd.DataFrame | str | os.PathLike[str],
    *,
    metric: Metric = "val",
    average: Average = "mean",
    interpolation: Interpolation = "T",
    restarts: int = 3,
    seed: int = 0,
    skip: bool = False,
) -> pd.DataFrame:
    """Mean accuracy [%] of each correction on each data set, cross-validated (CO) and global (GO).

    The paper's table of corrections, with the global fit without correction added. A correction
    that the runs cannot identify has missing values, and ``attrs["notes"]`` says why.
    """
    pd = require("pandas", "fit")
    frame = read(runs)
    found, _ = usable_conditions(
        conditions(frame, metric=metric, norm="batch", method="fixed"), skip=skip
    )
    places = sorted({str(c.facts["dataset"]) for c in found}, key=lambda name: _order(found, name))
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for optimisation in ("CO", "GO"):
        for variant in _VARIANTS:
            row: dict[str, Any] = {"correction": variant, "optimisation": optimisation}
            try:
                if optimisation == "CO":
                    folds = cross_validate(
                        frame,
                        variant,
                        metric=metric,
                        average=average,
                        interpolation=interpolation,
                        restarts=restarts,
                        seed=seed,
                        skip=skip,
                    )
                    scores = dict(zip(folds["dataset"], folds["accuracy"], strict=True))
                else:
                    theta = refit(list(found), variant, average, interpolation, restarts, seed)[
                        "theta"
                    ]
                    scores = {
                        place: judge(
                            [c for c in found if str(c.facts["dataset"]) == place],
                            variant,
                            theta,
                            average,
                            interpolation,
                        )["accuracy"]
                        for place in places
                    }
                row |= {place: 100 * scores[place] for place in places}
            except TstarError as error:
                notes.append(f"{variant} ({optimisation}): {error}")
            rows.append(row)
    table = pd.DataFrame(rows).reindex(columns=["correction", "optimisation", *places])
    if table[places].isna().all(axis=None):
        raise TstarError("No correction could be fitted:\n" + "\n".join(notes))
    table["avg"] = table[places].mean(axis=1, skipna=False)
    table.attrs["notes"] = notes
    return table


def coefficient_table(
    runs: pd.DataFrame | str | os.PathLike[str],
    *,
    metric: Metric = "val",
    average: Average = "mean",
    interpolation: Interpolation = "T",
    restarts: int = 3,
    seed: int = 0,
    skip: bool = False,
) -> pd.DataFrame:
    """The four sets by global optimisation: the paper's final coefficient table, plus the regret."""
    pd = require("pandas", "fit")
    every = conditions(read(runs), metric=metric, norm="batch", method="fixed")
    found, _ = usable_conditions(every, skip=skip)
    rows, notes = [], []
    for variant in _VARIANTS:
        row: dict[str, Any] = {"variant": variant}
        try:
            result = refit(list(found), variant, average, interpolation, restarts, seed)
            row |= dict(zip(coefficient_names(variant), result["theta"], strict=True))
            row["regret"] = result["regret"]
        except TstarError as error:
            notes.append(f"{variant}: {error}")
        rows.append(row)
    columns = ["variant", "alpha", "beta", "gamma", "delta", "regret"]
    table = pd.DataFrame(rows).reindex(columns=columns)
    if table["alpha"].isna().all():
        raise TstarError("No correction could be fitted:\n" + "\n".join(notes))
    table.attrs["notes"] = notes
    return table


def alternatives(
    runs: pd.DataFrame | str | os.PathLike[str],
    correction: str = "csgcn",
    *,
    metric: Metric = "val",
    average: Average = "mean",
    restarts: int = 3,
    seed: int = 0,
    skip: bool = False,
) -> pd.DataFrame:
    """The paper's procedure against ln T: cross-validated regret of four fits, on equal terms.

    Two forms (the paper's sum; a power law, ln T = α·ln M + β + γ·ln csg + δ·ln K) times two
    interpolations. Neither interpolation is the truth, so each fit is judged under both; the
    comparison is fair because every row is judged on the same left-out conditions by the same two
    yardsticks.
    """
    pd = require("pandas", "fit")
    every = conditions(read(runs), metric=metric, norm="batch", method="fixed")
    found, _ = usable_conditions(every, skip=skip)
    rows = []
    for label, form, interpolation in _FORMS:
        total = dict.fromkeys(_YARDSTICKS, 0.0)
        for held, theta in folds(found, correction, average, interpolation, restarts, seed, form):
            for column, yardstick in _YARDSTICKS.items():
                score = judge(held, correction, theta, average, yardstick, form)["regret"]
                total[column] += score * len(held) / len(found)
        rows.append({"fit": label, **total})
    return pd.DataFrame(rows)


def _order(found: Any, name: str) -> tuple[float, str]:
    """Data sets by csg, as the paper prints them; those without one come last."""
    values = [c.facts.get("csg") for c in found if str(c.facts["dataset"]) == name]
    known = [float(value) for value in values if value is not None]
    return (min(known) if known else float("inf"), name)
