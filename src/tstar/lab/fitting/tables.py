"""The paper's tables of coefficients, fitted to runs: by environment, by correction, and final."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from tstar.errors import TstarError
from tstar.formula import VARIANTS
from tstar.imports import require
from tstar.lab.curves.conditions import Average, Curve, grids, without
from tstar.lab.curves.lines import Interpolation, lines
from tstar.lab.curves.reading import Metric, Runs, read
from tstar.lab.fitting.fitter import unusable, usable_curves
from tstar.lab.fitting.model import Problem, coefficient_names, problem
from tstar.lab.fitting.search import RESTARTS, noise, ranges, solve

if TYPE_CHECKING:
    import pandas as pd

_NORMS = {"": "none", "_bn": "batch"}
_ENDS = ("", "_low", "_high")
_SIDE = (*(f"{name}{{0}}{end}" for name in ("alpha", "beta") for end in _ENDS), "accuracy{0}")
_COLUMNS = ["dataset", "model", "conditions", *(c.format(s) for s in _NORMS for c in _SIDE)]


@dataclass(frozen=True)
class How:
    """How every fit of a table is made; ``skip`` leaves out conditions that cannot be used."""

    metric: Metric = "val"
    average: Average = "mean"
    interpolation: Interpolation = "lnT"
    restarts: int = RESTARTS
    seed: int = 0
    skip: bool = False

    def usable(self, runs: Runs) -> tuple[tuple[Curve, ...], tuple[str, ...]]:
        """The curves of the runs that a fit can use, and which were left out and why."""
        return usable_curves(grids(read(runs), metric=self.metric), skip=self.skip)

    def posed(self, members: Sequence[Curve], variant: str, *, check: bool = True) -> Problem:
        """The optimization problem of some conditions."""
        curves = lines(members, self.metric, self.average, self.interpolation)
        return problem(members, curves, variant, check=check)

    def fitted(self, members: Sequence[Curve], variant: str) -> tuple[tuple[float, ...], float]:
        """The coefficients of some conditions, and their mean regret."""
        found = solve(self.posed(members, variant), self.seed, self.restarts)
        return found.theta, found.regret

    def accuracy(self, held: Sequence[Curve], variant: str, theta: Sequence[float]) -> float:
        """Mean accuracy of coefficients on any conditions."""
        task = self.posed(held, variant, check=False)
        return float(task.curves.best.mean() - task.loss(np.array(theta)))


def per_environment(runs: Runs, **keywords: Any) -> pd.DataFrame:
    """α and β of each model and data set, without and with BN: the paper's first such table.

    Accuracies are in %, at the fitted T, mean over M. If both sides were run, both are fitted to
    the conditions and seeds that they share; ``conditions`` counts them. ``alpha_low`` …
    ``beta_high`` is the range that the noise of the seeds cannot tell from the fit. If it reaches
    the bound of the search, α and β are **not identified** (any pair with T ≤ 1 fits if T = 1
    is best): they are missing, and such an environment counts on neither side in the mean and S.D.
    of α and β. The last rows are Avg. and S.D. (the population's, as in the paper, with its own
    95 % interval) over the environments that have both sides. ``attrs["notes"]`` says what
    ``skip=True`` left out.

    Args:
        runs: a data frame, a store, or conditions.
        keywords: the fields of :class:`How`, as for :func:`tstar.lab.fit`.
    """
    pd = require("pandas", "lab")
    how = How(**keywords)
    grid = grids(read(runs), metric=how.metric, norm=None)
    known = [c for c in grid if c.facts.get("norm", "batch") in _NORMS.values()]
    if not known:
        raise TstarError(f"No runs with norm 'none' or 'batch' found in {len(grid)} curves.")
    every, left_out = usable_curves(known, skip=how.skip)
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
    coefficients = [f"{c}{s}" for s in sides for c in ("alpha", "beta")]
    known = both[both[coefficients].notna().all(axis=1)]  # like with like: identified on every side
    values = {name: known[name] for name in coefficients}
    values |= {name: both[name] for name in ("accuracy", "accuracy_bn", "gain")}
    spreads = {n: v.std(ddof=0) for n, v in values.items() if v.count() > 1}  # one has none
    for name in coefficients if len(known) > 1 else ():  # 95 %, if the values are normal
        chi2 = require("scipy.stats", "lab").chi2.ppf([0.975, 0.025], len(known) - 1)
        ends = spreads[name] * np.sqrt(len(known) / chi2)
        spreads |= {f"{name}_low": ends[0], f"{name}_high": ends[1]}
    rows = [{"model": "Avg."} | {n: v.mean() for n, v in values.items()}, {"model": "S.D."}]
    found: pd.DataFrame = require("pandas", "lab").DataFrame([rows[0], rows[1] | spreads])
    found.insert(0, "dataset", "")
    found.attrs |= {"averaged": len(both), "identified": len(known)}
    return found


def _environment(
    place: str, members: Sequence[Curve], how: How, notes: list[str]
) -> dict[str, float]:
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
    row: dict[str, float] = {}
    for suffix, found in sides.items():
        try:
            row |= _side(found, suffix, how) if found else {}
        except TstarError as error:
            notes.append(f"{place} (norm={_NORMS[suffix]}): {error}")
            if not how.skip:
                raise TstarError(notes[-1]) from error
    return row


def _side(members: Sequence[Curve], suffix: str, how: How) -> dict[str, float]:
    task = how.posed(members, "base")
    found = solve(task)
    spans, identified = ranges(task, found, noise(members, how.metric))
    row = {f"accuracy{suffix}": 100 * (float(task.curves.best.mean()) - found.regret)}
    for name, value in zip(task.names, found.theta, strict=True):
        cells = (value if identified else np.nan, *spans[name])
        row |= {f"{name}{suffix}{end}": x for end, x in zip(_ENDS, cells, strict=True)}
    return {**row, "conditions": len(members)}


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


def folds(
    found: Sequence[Curve], variant: str, how: How
) -> Iterator[tuple[list[Curve], tuple[float, ...]]]:
    """For each data set: its conditions, and the coefficients fitted without them (CO)."""
    names = sorted({str(c.facts["dataset"]) for c in found})
    if len(names) < 2:
        raise TstarError(
            f"Cross-validation needs at least two data sets, got {', '.join(names)}; add another."
        )
    for left in names:
        others = [c for c in found if str(c.facts["dataset"]) != left]
        try:
            theta, _ = how.fitted(others, variant)
        except TstarError as error:
            raise TstarError(f"With {left!r} left out: {error}") from error
        yield [c for c in found if str(c.facts["dataset"]) == left], theta


def correction_table(runs: Runs, **keywords: Any) -> pd.DataFrame:
    """Mean accuracy [%] of each correction on each data set, cross-validated (CO) and global (GO).

    The paper's table of corrections, with the global fit without correction added. A correction
    that the runs cannot identify has missing values; ``attrs["notes"]`` says why.
    """
    how = How(**keywords)
    found, left_out = how.usable(runs)
    by_csg = sorted(found, key=lambda c: float(c.facts.get("csg") or np.inf))
    places = [*dict.fromkeys(str(c.facts["dataset"]) for c in by_csg)]

    def row(variant: str, optimization: str) -> Mapping[str, Any]:
        if optimization == "CO":
            thetas = {str(h[0].facts["dataset"]): theta for h, theta in folds(found, variant, how)}
        else:
            thetas = dict.fromkeys(places, how.fitted(found, variant)[0])
        scores = {}
        for place, theta in thetas.items():
            held = [c for c in found if str(c.facts["dataset"]) == place]
            scores[place] = 100 * how.accuracy(held, variant, theta)
        return {**scores, "avg": float(np.mean([*scores.values()]))}

    keys = [(variant, how_) for how_ in ("CO", "GO") for variant in VARIANTS]
    return _noted(["correction", "optimization", *places, "avg"], keys, row, left_out)


def coefficient_table(runs: Runs, **keywords: Any) -> pd.DataFrame:
    """The four sets by global optimization: the paper's last coefficient table, and the regret."""
    how = How(**keywords)
    found, left_out = how.usable(runs)

    def row(variant: str) -> Mapping[str, Any]:
        theta, regret = how.fitted(found, variant)
        return {**dict(zip(coefficient_names(variant), theta, strict=True)), "regret": regret}

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
