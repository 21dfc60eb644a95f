"""The paper's fit against fits in ln T: cross-validated regret of four, on equal terms.

    python -m research.alternatives runs.db cn

Two forms (the paper's sum; a power law, ln T = α·ln M + β + γ·ln csg + δ·ln K) times two
interpolations. Neither interpolation is the truth, so each fit is judged under both.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tstar.lab.curves import Curve, lines
from tstar.lab.curves.reading import Runs
from tstar.lab.fitting.model import MAXIMUM, MINIMUM, Array, Problem, problem
from tstar.lab.fitting.search import evolved, solve
from tstar.lab.fitting.tables import How

# Exponents; the power law's β is the logarithm of a temperature.
POWERS = {"alpha": (-2.0, 2.0), "beta": (-10.0, 10.0), "gamma": (-3.0, 3.0), "delta": (-3.0, 3.0)}
_FORMS = (
    ("sum, linear in T (the paper's)", False, "T"),
    ("sum, linear in ln T", False, "lnT"),
    ("power law, linear in T", True, "T"),
    ("power law, linear in ln T", True, "lnT"),
)


@dataclass(frozen=True)
class Powers(Problem):
    """The same problem with T = exp(Xθ), and ln M in place of sqrt(M)."""

    def temperatures(self, theta: Array) -> Array:
        linear = np.minimum(theta @ self.design.T, np.log(MAXIMUM))
        found: Array = np.clip(np.exp(linear), MINIMUM, MAXIMUM)
        return found


def posed(
    found: Sequence[Curve], variant: str, how: How, *, power: bool, check: bool = True
) -> Problem:
    curves = lines(found, how.metric, how.average, how.interpolation)
    task = problem(found, curves, variant, check=check)
    if not power:
        return task
    design = task.design.copy()
    design[:, 0] = 2 * np.log(design[:, 0])
    return Powers(curves, design, task.names)


def alternatives(runs: Runs, variant: str = "csgcn", **keywords: object) -> pd.DataFrame:
    """Cross-validated mean regret of each fit, judged in T and in ln T."""
    asked = How(**keywords)  # type: ignore[arg-type]
    found, _ = asked.usable(runs)
    names = sorted({str(c.facts["dataset"]) for c in found})
    rows = []
    for label, power, interpolation in _FORMS:
        how = replace(asked, interpolation=interpolation)  # type: ignore[arg-type]
        row: dict[str, object] = {"fit": label, "regret_in_T": 0.0, "regret_in_lnT": 0.0}
        for left in names:
            others = [c for c in found if str(c.facts["dataset"]) != left]
            held = [c for c in found if str(c.facts["dataset"]) == left]
            task = posed(others, variant, how, power=power)
            # Two coefficients of a power law have no straight lines to cross: evolve them too.
            theta = np.array(_solved(task, how, power=power))
            for yardstick in ("T", "lnT"):
                judged = posed(
                    held,
                    variant,
                    replace(how, interpolation=yardstick),
                    power=power,
                    check=False,  # type: ignore[arg-type]
                )
                row[f"regret_in_{yardstick}"] += float(judged.loss(theta)) * len(held) / len(found)  # type: ignore[operator]
        rows.append(row)
    return pd.DataFrame(rows)


def _solved(task: Problem, how: How, *, power: bool) -> tuple[float, ...]:
    if power:
        limits = np.array([POWERS[name] for name in task.names]).T
        return evolved(task, limits, how.seed, how.restarts).theta
    return solve(task, how.seed, how.restarts).theta


if __name__ == "__main__":
    print(alternatives(*sys.argv[1:3]).to_string(index=False))
