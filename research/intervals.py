"""Do the intervals of a fit hold? Planted coefficients, many draws of the noise, and how often an interval covers them.

    OMP_NUM_THREADS=1 python -m research.intervals        # → results/fit/{coverage.csv,coverage.md}

Two kinds of curves: **peaks** (a parabola in ln T around T*, four temperatures per octave) and **plateaus** (flat within a factor of three of T*, where any
coefficients that stay inside are as good as the planted ones). Conditions are drawn again, each with its three seeds. What is to be covered on
peaks is the fit to curves without noise, which the grid moves a little off the planted coefficients.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from research.pages import filled
from research.synthetic import planted_runs, powers_of_two
from tstar.formula import Coefficients
from tstar.lab.curves import Curve
from tstar.lab.fitting import How
from tstar.lab.fitting.intervals import intervals
from tstar.lab.fitting.model import Problem
from tstar.lab.fitting.search import solve

RESULTS = Path(__file__).resolve().parents[1] / "results" / "fit"
PLANTED = Coefficients("planted", 0.6, 1.0)
LEVELS = (0.5, 0.8, 0.95)
NOISE, SEEDS, REPLICATES = 0.01, 3, 40
HOW = How()


def runs(kind: str, noise: float, seed: int) -> pd.DataFrame:
    """Twelve conditions of one kind."""
    frame = planted_runs(
        PLANTED,
        grid=powers_of_two(4, largest=64.0),
        tasks=((1.5, 10), (7.0, 10), (25.0, 100)),
        seeds=SEEDS if noise else 1,
    )
    peak = PLANTED.alpha * np.sqrt(frame["num_features"]) + PLANTED.beta
    away = np.abs(np.log(frame["temperature"] / peak))
    clean = 0.9 - 0.04 * (away if kind == "peaks" else np.maximum(away - np.log(3.0), 0.0)) ** 2
    rng = np.random.default_rng(seed)
    return frame.assign(val_accuracy=np.clip(clean + rng.normal(0, noise, len(frame)), 0, 1))


def pose(conditions: Sequence[Curve]) -> Problem:
    """The problem of conditions, drawn again or not."""
    return HOW.posed(conditions, "base", check=False)


def trial(kind: str, seed: int) -> list[dict[str, object]]:
    """One draw of the noise: what each interval covers."""
    found, _ = HOW.usable(runs(kind, NOISE, seed))
    task = pose(found)
    theta = np.array(solve(task).theta)
    truth = dict(zip(task.names, _truth(kind), strict=True))
    rows = []
    for level in LEVELS:
        made = intervals(found, pose, theta, replicates=REPLICATES, seed=seed, level=level)
        for i, (name, (low, high)) in enumerate(made.items()):
            rows.append(
                {
                    "curves": kind,
                    "coefficient": name,
                    "level": level,
                    "covers": low <= truth[name] <= high,
                    "holds_estimate": low <= theta[i] <= high,
                    "width": high - low,
                }
            )
    return rows


@cache
def _truth(kind: str) -> tuple[float, ...]:
    if kind == "plateaus":
        return (PLANTED.alpha, PLANTED.beta)
    return solve(pose(HOW.usable(runs(kind, 0.0, 0))[0])).theta


def table(trials: int) -> pd.DataFrame:
    """How often each interval covers, over so many draws of the noise."""
    rows = [
        r for kind in ("peaks", "plateaus") for seed in range(trials) for r in trial(kind, seed)
    ]
    found = pd.DataFrame(rows).groupby(["curves", "coefficient", "level"], sort=False)
    return found.agg(
        trials=("covers", "size"),
        covered=("covers", "mean"),
        estimate_inside=("holds_estimate", "mean"),
        median_width=("width", "median"),
    ).reset_index()


def verdict(found: pd.DataFrame) -> str:
    """Which intervals cover too little, in words; two standard errors are chance."""
    error = (found["level"] * (1 - found["level"]) / found["trials"]) ** 0.5
    below = found[found["covered"] < found["level"] - 2 * error]
    above = found[found["covered"] > found["level"] + 2 * error]
    wide = (
        f"{len(above)} of the {len(found)} intervals cover more than they promise: they are wider than they need be, since they "
        "span all that the noise cannot tell apart."
    )
    if below.empty:
        return f"No interval covers less than it promises by more than chance. {wide}"
    named = "; ".join(
        f"{row.coefficient} on {row.curves} covers {100 * row.covered:.0f} % in place of {100 * row.level:.0f} %"
        for row in below.itertuples()
    )
    return f"**These intervals cover less than they promise**, by more than chance: {named}. {wide}"


def page(found: pd.DataFrame) -> str:
    """How to read the table, with a place for it."""
    head = (__doc__ or "").split("\n\n", 2)[2].strip().replace("\n", " ")
    n = int(found["trials"].iloc[0])
    return "\n".join(
        [
            "# Do the intervals hold?",
            "",
            head,
            "",
            "<!-- table coverage -->",
            "",
            "<!-- end of table -->",
            "",
            f"{n} draws of the noise (standard deviation {NOISE}), {SEEDS} seeds, {REPLICATES} refits each; the "
            f"standard error of a share is at most {100 * 0.5 / n**0.5:.1f} points. {verdict(found)}",
            "",
            "Rebuild: `python -m research.intervals`",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    found = table(parser.parse_args().trials)
    found.to_csv(RESULTS / "coverage.csv", index=False, float_format="%.4g")
    (RESULTS / "coverage.md").write_text(filled(page(found)), encoding="utf-8")
    print(found.to_string(index=False))


if __name__ == "__main__":
    main()
