"""c of the law T = c·sqrt(lr·M)·(steps/(K·B·(1 − μ)))^¼, fitted on the first atlas.

    python -m research.walk    # → results/atlas/walk.csv

The exponents are the law's own; c is where the mean validation accuracy of the SGD conditions is highest. Its interval is the
bootstrap's over data sets that share no data. Beside it: the values within a tenth of a point of the best, and the fits with one group of
data sets left out; over all conditions, and over those that train from scratch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from research.atlas import grid
from research.regret import cases
from tstar.formula import training_aware
from tstar.lab.curves import Curve
from tstar.lab.curves.resampling import clusters
from tstar.lab.evidence import atlas
from tstar.training import Training, family

FILE = Path(__file__).resolve().parents[1] / "results" / "atlas" / "walk.csv"
CANDIDATES = np.exp(np.linspace(math.log(0.05), math.log(5.0), 461))  # a hundredth apart
DRAWS = 2000


def without_c(case: Curve) -> float:
    """sqrt(lr·M)·(steps/(K·B·(1 − μ)))^¼ of a condition."""
    f, law = case.facts, training_aware().law
    assert law is not None
    told = Training("sgd", f["lr"], int(f["steps"]), f["momentum"], batch_size=int(f["batch_size"]))
    free = replace(law, sgd=1.0, minimum=1e-9, maximum=1e9)
    return free.temperature(f["num_features"], f["num_classes"], told)


def accuracies(found: Sequence[Curve]) -> np.ndarray:
    """Validation accuracy in points: one row per condition, one column per candidate for c."""
    rows = []
    for case in found:
        matched = case.matched()
        wanted = np.log(CANDIDATES * without_c(case))
        rows.append(np.interp(wanted, np.log(matched.temperatures), matched.means("val")))
    return 100 * np.array(rows)


def fitted(found: Sequence[Curve], seed: int = 0) -> dict[str, float]:
    """c with its interval, the plateau within a tenth of a point, and the range of c with one group of data sets left out."""
    table = accuracies(found)
    groups = clusters([str(case.facts["dataset"]) for case in found])
    sums = np.array([table[places].sum(axis=0) for places in groups])
    mean = sums.sum(axis=0) / len(table)
    random = np.random.default_rng(seed)
    drawn = random.integers(len(groups), size=(DRAWS, len(groups)))
    resampled = [CANDIDATES[sums[draw].sum(axis=0).argmax()] for draw in drawn]
    left_out = [CANDIDATES[(sums.sum(axis=0) - part).argmax()] for part in sums]
    level = CANDIDATES[mean >= mean.max() - 0.1]
    low, high = np.quantile(resampled, [0.025, 0.975])
    return {
        "conditions": len(table), "c": CANDIDATES[mean.argmax()], "low": low, "high": high,
        "level_low": level[0], "level_high": level[-1], "left_out_low": min(left_out), "left_out_high": max(left_out),
    }  # fmt: skip


def main() -> None:
    found = [grid(case) for case in cases(atlas().query("atlas == 1"), "batch")]
    sgd = [case for case in found if family(str(case.facts["optimizer"])) == "sgd"]
    scratch = [case for case in sgd if case.facts.get("scenario", "scratch") == "scratch"]
    rows = {"SGD": fitted(sgd), "SGD, from scratch": fitted(scratch)}
    made = pd.DataFrame(rows).T.rename_axis("part")
    made.to_csv(FILE, float_format="%.3g")
    print(made.round(3).to_string())


if __name__ == "__main__":
    main()
