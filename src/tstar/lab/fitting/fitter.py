"""From runs to coefficients: the paper's procedure from beginning to end, in one function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError, guarded
from tstar.formula import Coefficients, Provenance
from tstar.imports import require
from tstar.lab.curves.conditions import Curve, grids, listed, peak
from tstar.lab.curves.lines import Interpolation, lines
from tstar.lab.curves.reading import FACTS, FOLLOW, Metric, Runs, read
from tstar.lab.fitting.intervals import intervals, unidentified
from tstar.lab.fitting.model import Problem, problem
from tstar.lab.fitting.record import SYMBOLS, Fit
from tstar.lab.fitting.search import RESTARTS, TOLERANCE, Solution, Solutions, solve

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
LEAST_TEMPERATURES = 3


@dataclass(frozen=True)
class How:
    """How every fit is made.

    Attributes:
        metric: ``"val"``, or ``"test"`` as in the paper.
        interpolation: linear in ``"lnT"``, as everywhere in tstar, or in ``"T"`` as in the paper.
        restarts: runs of the optimizer, if there are more than two coefficients.
        seed: the seed of the optimizer and the bootstrap.
    """

    metric: Metric = "val"
    interpolation: Interpolation = "lnT"
    restarts: int = RESTARTS
    seed: int = 0

    def __str__(self) -> str:
        axis = "T" if self.interpolation == "T" else "ln T"
        return f"{self.metric} accuracy, mean over seeds, linear in {axis}"

    def posed(self, members: Sequence[Curve], variant: str, *, check: bool = True) -> Problem:
        """The optimization problem of some conditions."""
        curves = lines(members, self.metric, self.interpolation)
        return problem(members, curves, variant, check=check)

    def fitted(
        self, members: Sequence[Curve], variant: str, solved: Solutions | None = None
    ) -> Solution:
        """The coefficients of some conditions."""
        return solve(self.posed(members, variant), self.seed, self.restarts, solved)


@guarded("fit() failed")
def fit(runs: Runs, variant: str = "csgcn", *, bootstrap: int = 40, **keywords: Any) -> Fit:
    """Fit the temperature determination coefficients to runs with BN on a grid of temperatures.

    The paper's procedure: accuracy at any T is interpolated between the averages over seeds, and
    the sum over conditions at T = clip(α·sqrt(M) + β + γ·ln csg + δ·ln K, 1, 512) is
    maximized. On a coarse grid the coefficients are biased towards its nodes; T stays within a
    grid step. A condition that cannot carry a curve is left out, and named.

    Args:
        runs: a data frame, or a store (``.db``, ``.parquet``, ``.csv``) with one row per run.
        variant: ``"base"``, ``"csg"``, ``"cn"`` or ``"csgcn"``.
        bootstrap: refits for the intervals; 0 for none.
        keywords: the fields of :class:`How`.

    Returns:
        The coefficients and all that is needed to judge them.
    """
    how = How(**keywords)
    usable, left_out = usable_curves(grids(read(runs)))
    task = how.posed(usable, variant)
    solution = solve(task, how.seed, how.restarts)
    theta = np.array(solution.theta)
    frame = condition_table(usable, task, theta, how)
    numbers: Any = dict(zip(task.names, solution.theta, strict=True))
    spans = {}
    if bootstrap:
        pose = partial(how.posed, variant=variant, check=False)
        spans = intervals(usable, pose, replicates=bootstrap, seed=how.seed)
    return Fit(
        coefficients=Coefficients(
            name=f"fitted-{variant}", **numbers, provenance=_provenance(usable, solution, how)
        ),
        how=str(how),
        solution=solution,
        accuracy=float(frame["accuracy"].mean()),
        baselines={
            "BN, T = 1": float(frame["regret_T1"].mean()),
            f"the paper's {variant}": float(task.loss(task.published)),
        },
        conditions=frame,
        intervals=spans,
        unidentified=unidentified(task, theta, TOLERANCE),
        flags=tuple(_flags(usable, task, theta, frame, solution)),
        runs=sum(c.runs for c in usable),
        diverged=sum(c.diverged for c in usable),
        left_out=left_out,
    )


def unusable(curve: Curve) -> str:
    """Why no fit can use a curve; empty if one can."""
    if len(curve.temperatures) < LEAST_TEMPERATURES:
        return f"fewer than {LEAST_TEMPERATURES} temperatures"
    return "all runs diverged" if curve.diverged == curve.runs else ""


def usable_curves(every: Sequence[Curve]) -> tuple[tuple[Curve, ...], tuple[str, ...]]:
    """The conditions that can carry a curve, and which cannot, with the reason."""
    usable = tuple(c for c in every if not unusable(c))
    left_out = tuple(f"{c} ({unusable(c)})" for c in every if unusable(c))
    if not usable:
        raise TstarError(
            f"A fit needs conditions with {LEAST_TEMPERATURES} temperatures and a run that learned; "
            f"add runs:\n{listed(left_out)}"
        )
    return usable, left_out


def condition_table(usable: Sequence[Curve], task: Problem, theta: Array, how: How) -> pd.DataFrame:
    """One row per condition: fitted T and its regret, next to the best grid T and to T = 1."""
    frame = require("pandas", "lab").DataFrame([c.facts for c in usable])
    best, regret = task.curves.best, task.regret(theta)
    peaks = [peak(c.means(how.metric)) for c in usable]
    return frame.assign(
        temperatures=[len(c.temperatures) for c in usable],
        runs=[c.runs for c in usable],
        diverged=[c.diverged for c in usable],
        temperature=task.temperatures(theta),
        accuracy=best - regret,
        best_temperature=[c.temperatures[top] for c, top in zip(usable, peaks, strict=True)],
        best_accuracy=best,
        regret=regret,
        regret_T1=best - task.curves(np.ones(len(usable))),
        bracketed=[0 < top < len(c.temperatures) - 1 for top, c in zip(peaks, usable, strict=True)],
    )


def _flags(
    usable: Sequence[Curve], task: Problem, theta: Array, frame: pd.DataFrame, solution: Solution
) -> list[str]:
    """What a careful reader should know, one sentence each."""
    flags = []
    loose = [c for c, inside in zip(usable, frame["bracketed"], strict=True) if not inside]
    if loose:
        flags.append(
            f"the grid does not bracket the optimum in {len(loose)} of {len(usable)} conditions "
            f"(best at its end), extend it there:\n{listed(loose)}"
        )
    for name, value, low, high in zip(task.names, theta, *task.bounds, strict=True):
        if min(value - low, high - value) < 1e-6 * (high - low):
            flags.append(f"{SYMBOLS[name]} sits on the bound of the search, [{low:g}, {high:g}]")
    if not solution.success:
        flags.append("most restarts ended at a higher regret; try more of them")
    if len(usable) <= 2 * len(task.names):
        flags.append(f"{len(usable)} conditions are few for {len(task.names)} coefficients")
    return flags


def _provenance(usable: Sequence[Curve], solution: Solution, how: How) -> Provenance:
    """Ranges and settings of the runs behind a set; a setting with several values is a list."""

    def values(name: str) -> list[Any]:
        return sorted({c.facts[name] for c in usable if c.facts.get(name) is not None})

    spans = {
        name: [float(min(seen)), float(max(seen))]
        for name in ("num_features", "num_classes", "csg")
        if (seen := values(name))
    }
    hidden = ("samples", "method", "options", *spans)
    training: dict[str, Any] = {"metric": how.metric, "norm": "batch"}
    for name in (*FOLLOW, *FACTS):
        if name not in hidden and (seen := values(name)):
            training[name] = seen[0] if len(seen) == 1 else seen
    runs, diverged = sum(c.runs for c in usable), sum(c.diverged for c in usable)
    honest = (
        "; test accuracy chose the coefficients, as in the paper" if how.metric == "test" else ""
    )
    return Provenance(
        f"tstar fit: {len(usable)} conditions, {runs} runs, of which {diverged} diverged and "
        f"count as chance (1/K); {how}{honest}; {solution.how}; mean regret {solution.regret:.4g}",
        spans,
        training=training,
    )
