"""Differential evolution over the coefficients, restarted, with the optimizer's own verdict kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tstar.errors import TstarError, require, shown, unknown
from tstar.fitting.model import BOUNDS, Problem
from tstar.numbers import number, whole

# Relative spread of the population's regret at which it counts as converged; SciPy's default of
# 1e-2 leaves the coefficients loose, and the extra generations cost milliseconds.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Restart:
    """One run of the optimizer: where it ended, and whether it says that it converged."""

    theta: tuple[float, ...]
    regret: float
    success: bool
    message: str
    generations: int
    evaluations: int


def search(
    problem: Problem,
    bounds: Mapping[str, tuple[float, float]],
    rng: np.random.Generator,
) -> Restart:
    """One differential evolution (Storn and Price 1997, SciPy's best1bin), whole populations at a time."""
    optimize = require("scipy.optimize", "fit")
    result: Any = optimize.differential_evolution(
        problem.columns,
        [bounds[name] for name in problem.names],
        tol=TOLERANCE,
        atol=1e-9,
        seed=rng,
        polish=False,
        updating="deferred",
        vectorized=True,
    )
    return Restart(
        theta=tuple(float(value) for value in result.x),
        regret=float(result.fun),
        success=bool(result.success),
        message=str(result.message),
        generations=int(result.nit),
        evaluations=int(result.nfev),
    )


def polished(
    problem: Problem, bounds: Mapping[str, tuple[float, float]], found: Restart
) -> Restart:
    """The end of a search made sharp. The loss is piecewise linear and has no useful gradient: a simplex does it."""
    optimize = require("scipy.optimize", "fit")
    result: Any = optimize.minimize(
        problem.loss,
        np.array(found.theta),
        method="Nelder-Mead",
        bounds=[bounds[name] for name in problem.names],
        options={"xatol": 1e-7, "fatol": 1e-12},
    )
    evaluations = found.evaluations + int(result.nfev)
    if result.fun >= found.regret:
        return replace(found, evaluations=evaluations)
    theta = tuple(float(value) for value in result.x)
    return replace(found, theta=theta, regret=float(result.fun), evaluations=evaluations)


def restarted(
    problem: Problem, bounds: Mapping[str, tuple[float, float]], seed: int, restarts: int
) -> tuple[Restart, ...]:
    """Several searches from independent random populations, the best first and polished."""
    start = np.random.SeedSequence(whole("seed", seed, least=0))
    streams = start.spawn(whole("restarts", restarts, least=1))
    found = [search(problem, bounds, np.random.default_rng(stream)) for stream in streams]
    best, *others = sorted(found, key=lambda restart: restart.regret)
    return (polished(problem, bounds, best), *others)


def box(overrides: Mapping[str, tuple[float, float]] | None) -> dict[str, tuple[float, float]]:
    """The default bounds with the caller's in their place."""
    bounds = dict(BOUNDS)
    for name, limits in (overrides or {}).items():
        if name not in BOUNDS:
            raise unknown("coefficient in bounds", name, BOUNDS)
        if not isinstance(limits, tuple | list) or len(limits) != 2:
            raise TstarError(f"The bounds of {name} must be (low, high), got {shown(limits)}.")
        low, high = (number(f"A bound of {name}", limit) for limit in limits)
        if low >= high:
            raise TstarError(f"low < high must hold for the bounds of {name}, got {shown(limits)}.")
        bounds[name] = (low, high)
    return bounds
