"""The paper's tables of coefficients, fitted to runs: by environment, by correction, and final."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from tstar.errors import TstarError
from tstar.formula import VARIANTS
from tstar.imports import require
from tstar.lab.curves.conditions import Curve, grids, without
from tstar.lab.curves.reading import Runs, read
from tstar.lab.fitting.fitter import How, unusable, usable_curves
from tstar.lab.fitting.model import coefficient_names
from tstar.lab.fitting.search import TOLERANCE, Solutions, noise, ranges, solve

if TYPE_CHECKING:
    import pandas as pd

_NORMS = {"": "none", "_bn": "batch"}
_ENDS = ("", "_low", "_high")
_COEFFICIENTS = ("alpha", "beta")
_SIDE = (*(f"{name}{{0}}{end}" for name in _COEFFICIENTS for end in _ENDS), "accuracy{0}")
_COLUMNS = ["dataset", "model", "conditions"]
_COLUMNS += [c.format(s) for s in _NORMS for c in (*_SIDE, "identified{0}")]


def per_environment(runs: Runs, **keywords: Any) -> pd.DataFrame:
    """α and β of each model and data set, without and with BN: the paper's first such table.

    Accuracies are in %, at the fitted T, mean over M; ``conditions`` counts those of both sides.
    ``alpha_low`` … ``beta_high`` and ``identified`` are those of :func:`ranges`, at the noise of the
    seeds. The rows Avg. and S.D. (the population's, as in the paper, with its own 95 % interval) are
    over all environments that have both sides; if some are not identified, two more rows have α and
    β over those that are, on every side, if any. ``attrs["notes"]`` says what was left out.
    """
    pd = require("pandas", "lab")
    how = How(**keywords)
    grid = grids(read(runs), norm=None)
    known = [c for c in grid if c.facts.get("norm", "batch") in _NORMS.values()]
    if not known:
        raise TstarError(f"No runs with norm 'none' or 'batch' found in {len(grid)} curves.")
    every, left_out = usable_curves(known)
    notes, rows = list(left_out), []
    for (dataset, model), members in groupby(sorted(every, key=_place), _place):
        row = _environment(f"{dataset} · {model}", [*members], how, notes)
        rows += [{"dataset": dataset, "model": model, **row}] if row else []
    if not rows:
        raise TstarError("No environment could be fitted:\n" + "\n".join(notes))
    frame = pd.DataFrame(rows).reindex(columns=_COLUMNS)
    frame["gain"] = frame["accuracy_bn"] - frame["accuracy"]
    frame = frame.sort_values("gain", key=pd.isna, kind="stable", ignore_index=True)
    last = _summary(frame)
    result = pd.concat([frame, last], ignore_index=True)
    result.attrs |= {"notes": notes, **last.attrs}
    return result


def _place(curve: Curve) -> tuple[str, str]:
    return str(curve.facts["dataset"]), str(curve.facts.get("model") or "")


def _summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Avg. and S.D. over environments that have both sides (all, if none has)."""
    both = frame[frame["gain"].notna()] if frame["gain"].notna().any() else frame
    sides = [s for s in _NORMS if both[f"accuracy{s}"].notna().any()]  # that were run
    coefficients = [f"{c}{s}" for s in sides for c in _COEFFICIENTS]
    # Like with like: identified on every side.
    known = both[(both[[f"identified{s}" for s in sides]] == True).all(axis=1)]  # noqa: E712
    rows = _averages(both, [*coefficients, "accuracy", "accuracy_bn", "gain"])
    if 0 < len(known) < len(both):
        rows += [
            {**row, "model": f"{row['model']} (identified)"}
            for row in _averages(known, coefficients)
        ]
    summary: pd.DataFrame = require("pandas", "lab").DataFrame(rows)
    summary.insert(0, "dataset", "")
    summary.attrs |= {"averaged": len(both), "identified": len(known)}
    return summary


def _averages(frame: pd.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    """The mean, and the S.D. with its 95 % interval for α and β, if their values are normal."""
    spreads = {n: frame[n].std(ddof=0) for n in names if frame[n].count() > 1}  # one has none
    for name in [n for n in spreads if n.startswith(_COEFFICIENTS)]:
        n = frame[name].count()
        chi2 = require("scipy.stats", "lab").chi2.ppf([0.975, 0.025], n - 1)
        ends = spreads[name] * np.sqrt(n / chi2)
        spreads |= {f"{name}_low": ends[0], f"{name}_high": ends[1]}
    return [{"model": "Avg."} | {n: frame[n].mean() for n in names}, {"model": "S.D."} | spreads]


def _environment(
    place: str, members: Sequence[Curve], how: How, notes: list[str]
) -> dict[str, Any]:
    """One environment: each side that can be fitted, on what both sides have if there are two."""
    sides = {
        suffix: [c for c in members if c.facts.get("norm", "batch") == norm]
        for suffix, norm in _NORMS.items()
    }
    if all(sides.values()):
        shared = _matched(sides[""], sides["_bn"])
        if not shared[""]:
            notes.append(f"{place}: not compared, since no condition has a seed of both sides")
        sides = shared if shared[""] else {**sides, "": []}
    row: dict[str, Any] = {}
    for suffix, found in sides.items():
        try:
            row |= _side(found, suffix, how) if found else {}
        except TstarError as error:
            notes.append(f"{place} (norm={_NORMS[suffix]}): {error}")
    return row


def _side(members: Sequence[Curve], suffix: str, how: How) -> dict[str, Any]:
    task = how.posed(members, "base")
    solution = solve(task)
    chance = noise(members, how.metric)
    spans, identified = ranges(task, solution, chance or TOLERANCE)
    row: dict[str, Any] = {f"identified{suffix}": identified, "conditions": len(members)}
    row[f"accuracy{suffix}"] = 100 * (float(task.curves.best.mean()) - solution.regret)
    for name, value in zip(task.names, solution.theta, strict=True):
        cells = zip(_ENDS, (value, *(spans[name] if chance else (np.nan, np.nan))), strict=True)
        row |= {f"{name}{suffix}{end}": x for end, x in cells}
    return row


def _matched(plain: Sequence[Curve], bn: Sequence[Curve]) -> dict[str, list[Curve]]:
    """The conditions that were run without BN and with it, each with the seeds of both."""
    other = {without(c.facts, "norm"): c for c in plain}
    found: dict[str, list[Curve]] = {suffix: [] for suffix in _NORMS}
    for curve in bn:
        pair = other.get(without(curve.facts, "norm"))
        seeds = set() if pair is None else set(pair.seeds) & set(curve.seeds)
        if pair is not None and seeds:
            both = (pair.only(seeds), curve.only(seeds))
            if not any(map(unusable, both)):
                found[""].append(both[0])
                found["_bn"].append(both[1])
    return found


def correction_table(runs: Runs, *, variant: str | None = None, **keywords: Any) -> pd.DataFrame:
    """Mean accuracy [%] of each correction on each data set, cross-validated (CO) and global (GO).

    The paper's table of corrections, with the global fit without correction added; of one
    ``variant`` if it is given. A correction that the runs cannot identify has missing values;
    ``attrs["notes"]`` says why.
    """
    how = How(**keywords)
    members, left_out = usable_curves(grids(read(runs)))
    by_csg = sorted(members, key=lambda c: float(c.facts.get("csg") or np.inf))
    places = [*dict.fromkeys(str(c.facts["dataset"]) for c in by_csg)]
    # Variants share their special cases, which are solved once.
    solved: dict[str, Solutions] = {place: {} for place in ("", *places)}

    def row(variant: str, optimization: str) -> Mapping[str, Any]:
        if optimization == "CO" and len(places) < 2:
            raise TstarError(f"CO needs at least two data sets, got {places[0]}; add another.")
        scores = {}
        for place in places:
            held = [c for c in members if str(c.facts["dataset"]) == place]
            others = [c for c in members if c not in held] if optimization == "CO" else members
            known = solved[place if optimization == "CO" else ""]
            theta = np.array(how.fitted(others, variant, known).theta)
            task = how.posed(held, variant, check=False)
            scores[place] = 100 * float(task.curves.best.mean() - task.loss(theta))
        return {**scores, "avg": float(np.mean([*scores.values()]))}

    names = VARIANTS if variant is None else (variant,)
    keys = [(name, optimization) for optimization in ("CO", "GO") for name in names]
    return _noted(["correction", "optimization", *places, "avg"], keys, row, left_out)


def coefficient_table(runs: Runs, **keywords: Any) -> pd.DataFrame:
    """The four sets by global optimization: the paper's last coefficient table, and the regret."""
    how = How(**keywords)
    members, left_out = usable_curves(grids(read(runs)))
    solved: Solutions = {}

    def row(variant: str) -> Mapping[str, Any]:
        solution = how.fitted(members, variant, solved)
        numbers = zip(coefficient_names(variant), solution.theta, strict=True)
        return {**dict(numbers), "regret": solution.regret}

    columns = ["variant", "alpha", "beta", "gamma", "delta", "regret"]
    return _noted(columns, [(variant,) for variant in VARIANTS], row, left_out)


def _noted(
    columns: list[str],
    keys: Sequence[tuple[str, ...]],
    row: Callable[..., Mapping[str, Any]],
    left_out: Sequence[str],
) -> pd.DataFrame:
    """One row per key; a row that cannot be fitted is missing, with the reason in a note."""
    notes, rows = list(left_out), []
    for key in keys:
        named = dict(zip(columns, key, strict=False))
        try:
            rows.append({**named, **row(*key)})
        except TstarError as error:
            rows.append(named)
            notes.append(f"{' '.join(key)}: {error}")
    if len(notes) == len(left_out) + len(keys):
        raise TstarError("No correction could be fitted:\n" + "\n".join(notes))
    frame = require("pandas", "lab").DataFrame(rows).reindex(columns=columns)
    frame.attrs["notes"] = notes
    return frame
