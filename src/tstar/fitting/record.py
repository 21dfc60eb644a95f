"""What a fit returns: the coefficients, and everything needed to judge them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tstar.fitting.bootstrap import Interval
from tstar.fitting.flatness import Flat
from tstar.fitting.search import Restart
from tstar.formula.coefficients import Coefficients

if TYPE_CHECKING:
    import pandas as pd

SYMBOLS = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ"}
_PLAIN = (
    *("variant", "metric", "average", "interpolation", "regret", "accuracy", "baselines"),
    *("success", "runs", "diverged"),
)


@dataclass(frozen=True, eq=False)
class Fit:
    """Fitted coefficients with their evidence; printing it shows all of it.

    Attributes:
        coefficients: the record that ``tstar.temperature(coefficients=…)`` takes.
        variant: what was asked for, as were the next three.
        metric: whose accuracy, "val" or "test".
        average: over seeds.
        interpolation: between the temperatures of the grid.
        regret: mean over conditions of (accuracy at the best grid T − accuracy at the fitted T).
        accuracy: mean interpolated accuracy at the fitted T.
        baselines: the same mean regret for T = 1 and for the paper's set of the same variant, on
            the same curves.
        conditions: one row per condition: fitted T, accuracy there, best grid T, regrets, flags.
        restarts: every run of the optimizer, the best first.
        intervals: bootstrap intervals, over seeds and over conditions; empty without bootstrap.
        flat: lines of coefficients that cost less than 0.1 points, flattest first.
        flags: what a careful reader should know, one sentence each.
        runs: how many runs were used.
        diverged: how many of them counted as chance.
        left_out: conditions that ``skip=True`` left out, each with the reason.
    """

    coefficients: Coefficients
    variant: str
    metric: str
    average: str
    interpolation: str
    regret: float
    accuracy: float
    baselines: dict[str, float]
    conditions: pd.DataFrame
    restarts: tuple[Restart, ...]
    intervals: tuple[Interval, ...]
    flat: tuple[Flat, ...]
    flags: tuple[str, ...]
    runs: int
    diverged: int
    left_out: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        """Whether the optimizer converged in the restart that was taken."""
        return self.restarts[0].success

    @property
    def unidentified(self) -> tuple[str, ...]:
        """The coefficients that these runs leave open: the loss stays flat to the bound of the search."""
        return tuple(n for n in self.values if any(n in flat.unidentified for flat in self.flat))

    @property
    def values(self) -> dict[str, float]:
        """The fitted coefficients by name."""
        numbers = {name: getattr(self.coefficients, name) for name in SYMBOLS}
        return {name: float(value) for name, value in numbers.items() if value is not None}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the coefficients as a JSON file that every ``coefficients=`` takes."""
        self.coefficients.save(path)

    def to_dict(self) -> dict[str, Any]:
        """The fit as plain JSON types."""
        return {
            **{name: getattr(self, name) for name in _PLAIN},
            "coefficients": self.coefficients.to_dict(),
            "restarts": [vars(restart) for restart in self.restarts],
            "intervals": [
                {"over": i.over, "level": i.level, "ranges": dict(i.ranges), "n": len(i.replicates)}
                for i in self.intervals
            ],
            "flat": [vars(flat) for flat in self.flat],
            "unidentified": list(self.unidentified),
            "flags": list(self.flags),
            "left_out": list(self.left_out),
            "conditions": plain_rows(self.conditions),
        }

    def __str__(self) -> str:
        converged = sum(restart.success for restart in self.restarts)
        spread = self.restarts[-1].regret - self.restarts[0].regret
        lines = [
            f"T* = clip({_formula(self.values)}, {self.coefficients.minimum:g}, "
            f"{self.coefficients.maximum:g})   ({self.coefficients.name})",
            f"  from {len(self.conditions)} conditions, {self.runs} runs ({self.diverged} diverged, counted as "
            f"chance), {self.metric} accuracy, {self.average} over seeds, linear in {_axis(self.interpolation)}",
            f"  mean regret to the best grid T: {100 * self.regret:.2f} points  ("
            + ", ".join(f"{name}: {100 * value:.2f}" for name, value in self.baselines.items())
            + ")",
            f"  optimizer: {converged} of {len(self.restarts)} restarts converged, regrets within "
            f"{100 * spread:.3f} points",
        ]
        loose = self.unidentified
        for name, value in self.values.items():
            bands = "".join(
                f"   [{', '.join(map(_four, i.ranges[name]))}] over {i.over}"
                for i in self.intervals
            )
            if name in loose:
                bands = "   no interval: see the flat valley"
            lines.append(f"  {SYMBOLS[name]} = {_four(value):>8}{bands}")
        if self.intervals and len(loose) < len(self.values):
            first = self.intervals[0]
            lines.append(
                f"  intervals: {100 * first.level:g} %, from {len(first.replicates)} bootstrap refits each, and all that "
                "the noise cannot tell apart"
            )
        flat = self.flat[0]
        if loose:
            symbols = [SYMBOLS[name] for name in loose]
            lines.append(
                f"  flat valley: {' and '.join(symbols)} cannot be told apart by these runs; anywhere on this line less than "
                "0.1 points are lost:"
            )
            header = "".join(f"{SYMBOLS[name]:>10}" for name in flat.names)
            lines.append(f"    {header}")
            lines += ["    " + "".join(f"{x:>10.3f}" for x in point) for point in flat.points()]
            lines.append("    drawn by: tstar figure valley RUNS")
        else:
            lines.append("  flattest direction (less than 0.1 points lost from end to end):")
            lines.append(f"    {flat}")
        lines += [f"  note: {flag}" for flag in self.flags]
        lines += [f"  left out: {text}" for text in self.left_out]
        return "\n".join(lines)


def plain_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as plain JSON types, missing values as null."""
    return [
        {str(name): None if value != value else value for name, value in row.items()}
        for row in frame.to_dict(orient="records")
    ]


def _four(value: float) -> str:
    """Four decimals; what rounds to zero has no sign."""
    return f"{round(value, 4) + 0.0:.4f}"


def _formula(values: dict[str, float]) -> str:
    terms = {"alpha": "·sqrt(M)", "beta": "", "gamma": "·ln csg", "delta": "·ln K"}
    text = " ".join(
        f"{'-' if round(value, 4) < 0 else '+'} {round(abs(value), 4):g}{terms[name]}"
        for name, value in values.items()
    )
    return text.removeprefix("+ ")


def _axis(interpolation: str) -> str:
    return "T" if interpolation == "T" else "ln T"
