"""From runs to coefficients: the paper's procedure from beginning to end, in one function."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tstar.curves.conditions import Average, Curve, grids, listed, peak
from tstar.curves.lines import Interpolation, lines
from tstar.curves.reading import FACTS, FOLLOW, Metric, read
from tstar.errors import TstarError, require
from tstar.fitting.bootstrap import intervals
from tstar.fitting.flatness import flat_directions
from tstar.fitting.model import Problem, problem
from tstar.fitting.record import SYMBOLS, Fit
from tstar.fitting.search import Restart, box, restarted
from tstar.formula.choice import variant_name
from tstar.formula.coefficients import Coefficients, Provenance, Scope, get

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
LEAST_TEMPERATURES = 3
_PLACE = ("dataset", "model")


def fit(
    runs: pd.DataFrame | str | os.PathLike[str],
    variant: str = "csgcn",
    *,
    metric: Metric = "val",
    average: Average = "mean",
    interpolation: Interpolation = "lnT",
    bounds: Mapping[str, tuple[float, float]] | None = None,
    minimum: float = 1.0,
    maximum: float = 512.0,
    norm: str | None = "batch",
    method: str | None = "fixed",
    restarts: int = 5,
    bootstrap: int = 40,
    seed: int = 0,
    skip: bool = False,
    name: str | None = None,
    correction: str | None = None,
) -> Fit:
    """Fit the temperature determination coefficients to runs on a grid of temperatures.

    (i) For each condition the accuracy at any T is the linear interpolation of the averages over
    seeds; (ii) T = clip(α·sqrt(M) + β + γ·ln csg + δ·ln K, minimum, maximum); (iii) differential
    evolution maximizes the sum over conditions. Reference: the paper's section on the optimization
    of the coefficients. A piecewise-linear curve peaks at a grid node, so on a coarse grid the
    coefficients are biased towards the nodes; the fitted T stays within a grid step.

    Args:
        runs: a data frame, or a store (``.db``, ``.parquet``, ``.csv``) with one row per run.
        variant: ``"base"``, ``"csg"``, ``"cn"`` or ``"csgcn"``.
        metric: ``"val"``, or ``"test"`` as in the paper.
        average: of the seeds; the paper interpolates means, and reports medians elsewhere.
        interpolation: linear in ``"lnT"``, as everywhere in tstar, or in ``"T"`` as in the paper.
        bounds: of the search, over the defaults α [0, 10], β [−100, 100], γ and δ [−20, 20].
        minimum: the lower end of the clip; it becomes part of the set.
        maximum: its upper end.
        norm: keep runs with this norm before the output layer; the formula presupposes ``"batch"``.
        method: keep the runs of this method, ``None`` for all; a sweep's grid is ``"fixed"``.
        restarts: independent runs of the optimizer.
        bootstrap: refits for each kind of interval; 0 for none.
        skip: leave out conditions that cannot be used, and name them, instead of raising.
        name: of the coefficient set.
        correction: the old word for ``variant``, in which ``"none"`` is ``"base"``.
    """
    variant = variant_name(variant if correction is None else correction)
    every = grids(read(runs), metric=metric, norm=norm, method=method)
    usable, left_out = usable_curves(every, skip=skip)
    limits = box(bounds)
    curves = lines(usable, metric, average, interpolation)
    task = problem(usable, curves, variant, minimum=minimum, maximum=maximum)
    found = restarted(task, limits, seed, restarts)
    theta = np.array(found[0].theta)
    edges = np.array([limits[coefficient] for coefficient in task.names])
    source = _source(usable, found, metric, average, interpolation)
    numbers: dict[str, Any] = dict(zip(task.names, found[0].theta, strict=True))
    chosen = Coefficients(
        name=name or f"fitted-{variant}",
        **numbers,
        minimum=float(minimum),
        maximum=float(maximum),
        provenance=_provenance(usable, source, metric, norm),
    )
    frame = condition_table(usable, task, theta, metric, average)
    bands = (
        intervals(
            usable, metric, task, theta, edges, replicates=bootstrap, seed=seed, average=average
        )
        if bootstrap
        else ()
    )
    return Fit(
        coefficients=chosen,
        variant=variant,
        metric=metric,
        average=average,
        interpolation=interpolation,
        regret=found[0].regret,
        accuracy=float(frame["accuracy"].mean()),
        baselines={
            f"{'BN, ' if norm == 'batch' else ''}T = 1": float(frame["regret_T1"].mean()),
            **_paper_regret(task, chosen.variant),
        },
        conditions=frame,
        restarts=found,
        intervals=bands,
        flat=flat_directions(task, theta, edges),
        flags=tuple(_flags(usable, task, theta, edges, frame, found)),
        runs=sum(c.runs for c in usable),
        diverged=sum(c.diverged for c in usable),
        left_out=left_out,
    )


def usable_curves(
    every: Sequence[Curve], *, skip: bool
) -> tuple[tuple[Curve, ...], tuple[str, ...]]:
    """The conditions that can carry a curve; the others are named in an error, or left out."""
    few = [c for c in every if len(c.temperatures) < LEAST_TEMPERATURES]
    dead = [c for c in every if c.diverged == c.runs and c not in few]
    kept = tuple(c for c in every if c not in few and c not in dead)
    if (few or dead) and not skip:
        parts = []
        if few:
            parts.append(
                f"Every condition needs at least {LEAST_TEMPERATURES} temperatures, got fewer in "
                f"{len(few)} of {len(every)}:\n{listed(few)}"
            )
        if dead:
            parts.append(
                f"All runs diverged in {len(dead)} of {len(every)} conditions:\n{listed(dead)}"
            )
        if apart := _apart([*few, *dead], kept):
            parts.append(f"Unlike the others of the same data set and model: {apart}.")
        raise TstarError("\n".join(parts) + "\nAdd runs, or pass skip=True to leave them out.")
    if not kept:
        raise TstarError(
            f"None of the {len(every)} conditions can be used: each has fewer than "
            f"{LEAST_TEMPERATURES} temperatures, or all of its runs diverged:\n{listed(every)}"
        )
    reasons = tuple(f"{c} (fewer than {LEAST_TEMPERATURES} temperatures)" for c in few)
    return kept, reasons + tuple(f"{c} (all runs diverged)" for c in dead)


def _apart(some: Sequence[Curve], others: Sequence[Curve]) -> str:
    """The facts that a list does not show, and that none of the others of the same data set and model shares."""
    found: dict[str, None] = {}
    for curve in some:
        shown = {part.partition("=")[0] for part in str(curve).split(", ")}
        same = [c for c in others if all(c.facts.get(n) == curve.facts.get(n) for n in _PLACE)]
        for name in FACTS if same else ():
            value = curve.facts.get(name)
            if name in shown or value in (None, *(c.facts.get(name) for c in same)):
                continue
            found[f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"] = None
    return ", ".join(found)


def condition_table(
    usable: Sequence[Curve], task: Problem, theta: Array, metric: Metric, average: Average
) -> pd.DataFrame:
    """One row per condition: fitted T and its regret, next to the best grid T and to T = 1."""
    pd = require("pandas", "fit")
    temperature = task.temperatures(theta)
    regret = task.regret(theta)
    at_one = task.curves(np.ones(len(usable)))
    rows = []
    for i, c in enumerate(usable):
        highest = peak(c.means(metric, average))
        rows.append(
            {
                **c.facts,
                "temperatures": len(c.temperatures),
                "runs": c.runs,
                "diverged": c.diverged,
                "temperature": float(temperature[i]),
                "accuracy": float(task.curves.best[i] - regret[i]),
                "best_temperature": float(task.curves.best_temperature[i]),
                "best_accuracy": float(task.curves.best[i]),
                "regret": float(regret[i]),
                "regret_T1": float(task.curves.best[i] - at_one[i]),
                "bracketed": 0 < highest < len(c.temperatures) - 1,
            }
        )
    return pd.DataFrame(rows)


def _paper_regret(task: Problem, variant: str) -> dict[str, float]:
    """Mean regret of the published set of the same variant, on the same curves."""
    paper = get(variant)
    theta = np.array([getattr(paper, name) for name in task.names], dtype=float)
    return {f"the paper's {variant}": float(task.loss(theta))}


def _flags(
    usable: Sequence[Curve],
    task: Problem,
    theta: Array,
    edges: Array,
    frame: pd.DataFrame,
    found: Sequence[Restart],
) -> list[str]:
    flags = []
    loose = [c for c, inside in zip(usable, frame["bracketed"], strict=True) if not inside]
    if loose:
        flags.append(
            f"the grid does not bracket the optimum in {len(loose)} of {len(usable)} conditions (best at "
            f"its end), extend it there:\n{listed(loose)}"
        )
    outside = [
        c
        for c, T in zip(usable, frame["temperature"], strict=True)
        if not c.temperatures[0] <= T <= c.temperatures[-1]
    ]
    if outside:
        flags.append(
            f"the fitted T lies outside the grid, where the curve is taken as constant, in "
            f"{len(outside)} conditions:\n{listed(outside)}"
        )
    for name, value, (low, high) in zip(task.names, theta, edges, strict=True):
        if min(value - low, high - value) < 1e-6 * (high - low):
            flags.append(f"{SYMBOLS[name]} sits on the bound of the search, [{low:g}, {high:g}]")
    if not found[0].success:
        flags.append(f"the optimizer did not converge: {found[0].message}")
    if len(usable) <= 2 * len(task.names):
        flags.append(f"{len(usable)} conditions are few for {len(task.names)} coefficients")
    return flags


def _source(
    usable: Sequence[Curve],
    found: Sequence[Restart],
    metric: str,
    average: str,
    interpolation: str,
) -> str:
    runs, diverged = sum(c.runs for c in usable), sum(c.diverged for c in usable)
    converged = sum(restart.success for restart in found)
    honest = " (test accuracy chose the coefficients, as in the paper)" if metric == "test" else ""
    return (
        f"tstar fit: {len(usable)} conditions, {runs} runs, of which {diverged} diverged and count as chance (1/K); "
        f"{metric} accuracy{honest}, {average} over seeds, linear interpolation in "
        f"{'T' if interpolation == 'T' else 'ln T'}; differential evolution, {converged} of {len(found)} "
        f"restarts converged; mean regret {found[0].regret:.4g}"
    )


def _provenance(usable: Sequence[Curve], source: str, metric: str, norm: str | None) -> Provenance:
    """Ranges and settings of the runs behind a set; a setting with several values is a list."""
    spans = {
        name: (float(min(values)), float(max(values)))
        for name in ("num_features", "num_classes", "csg")
        if (values := _values(usable, name))
    }
    hidden = ("dataset", "model", "num_train", "method", "options")
    settings = [name for name in ("norm", *FOLLOW, *FACTS) if name not in (*spans, *hidden)]
    training: dict[str, Any] = {"metric": metric, **({"norm": norm} if norm else {})}
    for name in settings:
        if values := _values(usable, name):
            training[name] = values[0] if len(values) == 1 else values
    places = ", ".join(map(str, _values(usable, "dataset")))
    models = ", ".join(map(str, _values(usable, "model")))
    note = f"data sets: {places}" + (f"; models: {models}" if models else "")
    return Provenance(source=source, fitted=Scope(**spans, note=note), training=training)


def _values(usable: Sequence[Curve], name: str) -> list[Any]:
    return sorted({c.facts[name] for c in usable if c.facts.get(name) is not None})
