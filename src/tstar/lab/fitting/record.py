"""What a fit returns: the coefficients, and everything needed to judge them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tstar.formula import Coefficients
from tstar.lab.cells import plain
from tstar.lab.fitting.model import coefficient_names
from tstar.lab.fitting.search import Solution

if TYPE_CHECKING:
    import pandas as pd

SYMBOLS = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ"}
_TERMS = {"alpha": "·sqrt(M)", "beta": "", "gamma": "·ln csg", "delta": "·ln K"}


@dataclass(frozen=True, eq=False)
class Fit:
    """Fitted coefficients with their evidence; printing it shows all of it.

    Attributes:
        coefficients: the record that ``tstar.temperature(coefficients=…)`` takes.
        how: accuracy, average and interpolation, in words.
        solution: the coefficients as numbers, their mean regret, and how they were found.
        accuracy: mean interpolated accuracy at the fitted T.
        baselines: the mean regret of T = 1 and of the paper's set of the same variant.
        conditions: one row per condition: fitted T, accuracy there, best grid T, regrets.
        intervals: 95 % intervals of a bootstrap over conditions and seeds; empty without bootstrap.
        unidentified: the coefficients that these runs leave open: on a line to the bound of the
            search less than 0.1 points are lost.
        flags: what a careful reader should know, one sentence each.
        runs: how many runs were used. diverged: how many of them counted as chance.
        left_out: conditions that cannot carry a curve, each with the reason.
    """

    coefficients: Coefficients
    how: str
    solution: Solution
    accuracy: float
    baselines: dict[str, float]
    conditions: pd.DataFrame
    intervals: Mapping[str, tuple[float, float]]
    unidentified: tuple[str, ...]
    flags: tuple[str, ...]
    runs: int
    diverged: int
    left_out: tuple[str, ...] = ()

    @property
    def regret(self) -> float:
        """Mean over conditions of accuracy at the best grid T − accuracy at the fitted T."""
        return self.solution.regret

    @property
    def values(self) -> dict[str, float]:
        """The fitted coefficients by name."""
        names = coefficient_names(self.coefficients.variant)
        return dict(zip(names, self.solution.theta, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The fit as plain JSON types."""
        facts = ("how", "regret", "accuracy", "baselines", "runs", "diverged", "intervals")
        return {
            "variant": self.coefficients.variant,
            "coefficients": self.coefficients.to_dict(),
            **{name: getattr(self, name) for name in facts},
            "success": self.solution.success,
            **{n: list(getattr(self, n)) for n in ("unidentified", "flags", "left_out")},
            "conditions": plain(self.conditions.to_dict("records")),
        }

    def __str__(self) -> str:
        clip = f"{self.coefficients.minimum:g}, {self.coefficients.maximum:g}"
        rivals = ", ".join(f"{name}: {100 * x:.2f}" for name, x in self.baselines.items())
        rounded = {name: round(value, 4) for name, value in self.values.items()}
        terms = [f"{'-+'[x >= 0]} {abs(x):g}{_TERMS[name]}" for name, x in rounded.items()]
        formula = " ".join(terms).removeprefix("+ ")
        lines = [
            f"T* = clip({formula}, {clip})   ({self.coefficients.name})",
            f"  from {len(self.conditions)} conditions, {self.runs} runs ({self.diverged} "
            f"diverged, counted as chance), {self.how}",
            f"  mean regret to the best grid T: {100 * self.regret:.2f} points  ({rivals})",
            f"  found by: {self.solution.how}",
        ]
        for name, value in self.values.items():
            band = ", ".join(f"{end:.4f}" for end in self.intervals.get(name, ()))
            note = f"   [{band}]" if band else ""
            note = "   not identified" if name in self.unidentified else note
            lines.append(f"  {SYMBOLS[name]} = {value:8.4f}{note}")
        if self.intervals and len(self.unidentified) < len(self.values):
            lines.append("  intervals: 95 %, from a bootstrap over conditions and seeds")
        lines += [f"  note: {flag}" for flag in self.flags]
        return "\n".join(lines + [f"  left out: {text}" for text in self.left_out])
