"""Corrections side by side, as in the paper's tables; and the alternatives to its procedure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tstar.curves.conditions import Curve
from tstar.curves.lines import Interpolation
from tstar.curves.reading import Runs
from tstar.errors import TstarError, require
from tstar.fitting.environments import How, Keywords, folds, judge, refit
from tstar.fitting.model import Form, coefficient_names
from tstar.formula.coefficients import VARIANTS

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Unpack

_FORMS: tuple[tuple[str, Form, Interpolation], ...] = (
    ("sum, linear in T (the paper's)", "sum", "T"),
    ("sum, linear in ln T", "sum", "lnT"),
    ("power law, linear in T", "power", "T"),
    ("power law, linear in ln T", "power", "lnT"),
)
_YARDSTICKS: dict[str, Interpolation] = {"regret_in_T": "T", "regret_in_lnT": "lnT"}


def correction_table(runs: Runs, **keywords: Unpack[Keywords]) -> pd.DataFrame:
    """Mean accuracy [%] of each correction on each data set, cross-validated (CO) and global (GO).

    The paper's table of corrections, with the global fit without correction added. A correction
    that the runs cannot identify has missing values; ``attrs["notes"]`` says why, and what ``skip=True`` left out.
    """
    pd = require("pandas", "fit")
    how = How(**keywords)
    found, left_out = how.usable(runs)
    places: dict[str, list[Curve]] = {}
    for curve in found:
        places.setdefault(str(curve.facts["dataset"]), []).append(curve)
    places = dict(sorted(places.items(), key=lambda item: _order(item[1], item[0])))
    rows: list[dict[str, Any]] = []
    notes = list(left_out)
    for optimization in ("CO", "GO"):
        for variant in VARIANTS:
            row: dict[str, Any] = {"correction": variant, "optimization": optimization}
            try:
                if optimization == "CO":
                    thetas = {
                        str(held[0].facts["dataset"]): theta
                        for held, theta in folds(found, variant, how)
                    }
                else:
                    thetas = dict.fromkeys(places, refit(found, variant, how)[0])
                row |= {
                    place: 100 * judge(members, variant, thetas[place], how)["accuracy"]
                    for place, members in places.items()
                }
            except TstarError as error:
                notes.append(f"{variant} ({optimization}): {error}")
            rows.append(row)
    table = pd.DataFrame(rows).reindex(columns=["correction", "optimization", *places])
    table["avg"] = table[[*places]].mean(axis=1, skipna=False)
    return _noted(table, "avg", notes)


def coefficient_table(runs: Runs, **keywords: Unpack[Keywords]) -> pd.DataFrame:
    """The four sets by global optimization: the paper's final coefficient table, plus the regret."""
    pd = require("pandas", "fit")
    how = How(**keywords)
    found, left_out = how.usable(runs)
    rows, notes = [], list(left_out)
    for variant in VARIANTS:
        row: dict[str, Any] = {"variant": variant}
        try:
            theta, row["regret"], _ = refit(found, variant, how)
            row |= dict(zip(coefficient_names(variant), theta, strict=True))
        except TstarError as error:
            notes.append(f"{variant}: {error}")
        rows.append(row)
    columns = ["variant", "alpha", "beta", "gamma", "delta", "regret"]
    return _noted(pd.DataFrame(rows).reindex(columns=columns), "alpha", notes)


def alternatives(runs: Runs, variant: str = "csgcn", **keywords: Unpack[Keywords]) -> pd.DataFrame:
    """The paper's procedure against ln T: cross-validated regret of four fits, on equal terms.

    Two forms (the paper's sum; a power law, ln T = α·ln M + β + γ·ln csg + δ·ln K) times two
    interpolations. Neither interpolation is the truth, so each fit is judged under both; the
    comparison is fair because every row is judged on the same left-out conditions by the same two
    yardsticks.
    """
    pd = require("pandas", "fit")
    asked = How(**keywords)
    found, _ = asked.usable(runs)
    rows = []
    for label, form, interpolation in _FORMS:
        how = replace(asked, interpolation=interpolation, form=form)
        total = dict.fromkeys(_YARDSTICKS, 0.0)
        for held, theta in folds(found, variant, how):
            for column, yardstick in _YARDSTICKS.items():
                score = judge(held, variant, theta, replace(how, interpolation=yardstick))
                total[column] += score["regret"] * len(held) / len(found)
        rows.append({"fit": label, **total})
    return pd.DataFrame(rows)


def _noted(table: pd.DataFrame, column: str, notes: list[str]) -> pd.DataFrame:
    if table[column].isna().all():
        raise TstarError("No correction could be fitted:\n" + "\n".join(notes))
    table.attrs["notes"] = notes
    return table


def _order(members: Sequence[Curve], name: str) -> tuple[float, str]:
    """Data sets by csg, as the paper prints them; those without one come last."""
    known = [float(c.facts["csg"]) for c in members if c.facts.get("csg") is not None]
    return (min(known) if known else float("inf"), name)
