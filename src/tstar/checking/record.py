"""What a check found, and what it says in words: only what chance does not explain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from tstar.checking.noise import FEW, may_be_noise, within_noise
from tstar.curves import Judged
from tstar.recommendation import Recommendation


@dataclass(frozen=True)
class Row:
    """One recipe: its mean accuracies, their standard error over the seeds, and how many ran.

    ``temperature`` is ``None`` for the model as it is (T = 1, no norm), ``rate`` what the learning rate was multiplied by.
    Diverged runs count as 1/K.
    """

    temperature: float | None
    val_accuracy: float
    test_accuracy: float
    error: float | None
    runs: int
    diverged: int
    rate: float = 1.0

    def __str__(self) -> str:
        name = "plain" if self.temperature is None else f"{self.temperature:.3g}"
        return name if self.rate == 1 else f"{name}, rate × {self.rate:g}"


@dataclass(frozen=True)
class Check:
    """What a check found: ``rows`` (the plain model first), the peak, what the formula says, and the advice.

    ``judged`` is the row nearest to the formula's T at the given rate (in ln T), as :mod:`tstar.curves` judges any temperature. The
    last row is the recipe that the evidence favors for this optimizer, where that has another rate. Accuracies are of
    ``val_samples``, others for each seed, and of ``test_samples``.
    """

    rows: tuple[Row, ...]
    judged: Judged
    temperature: float
    advice: Recommendation
    steps: int
    epochs: float
    seconds: float
    val_samples: int
    test_samples: int

    @property
    def plain(self) -> Row:
        return self.rows[0]

    @property
    def best(self) -> Row:
        """The temperature with the highest validation accuracy, the lowest where several tie."""
        return self._at(self.judged.best_temperature)

    @property
    def formula(self) -> Row:
        """The row nearest to the formula's temperature (in ln T)."""
        return self._at(self.judged.temperature)

    @property
    def favored(self) -> Row:
        """The recipe that the evidence favors for this optimizer, tried whether or not it is advised here."""
        return self.rows[-1] if self.rows[-1].rate != 1 else self.formula

    @property
    def advised(self) -> Row:
        """The row of the advice: the plain one where it is to leave the model."""
        if self.advice.leave:
            return self.plain
        return self.favored if self.favored.rate == self.advice.lr_factor else self.formula

    def _at(self, temperature: float) -> Row:
        return next(row for row in self.rows if row.temperature == temperature and row.rate == 1)

    @property
    def told_apart(self) -> bool:
        """Whether validation accuracy differs between the temperatures by more than chance."""
        found = [row.val_accuracy for row in self.rows[1:] if row.rate == 1]
        pairs = max(1, math.comb(len(found), 2))
        return not within_noise(
            max(found), min(found), self.val_samples * self.plain.runs, pairs=pairs
        )

    @property
    def sentence(self) -> str:
        """What the table says, in a few words."""
        best, ours, plain, told = self.best, self.formula, self.plain, self.favored
        tried = f"{ours.temperature:.3g}"
        nearest = "" if tried == f"{self.temperature:.3g}" else f" (nearest in this check: {tried})"
        parts = [
            f"Your model as it is gives {_percent(plain)} on test data. At your rate the formula points at T = "
            f"{self.temperature:.3g}{nearest}: {self._next_to(ours, plain, 'your model')}."
        ]
        if not self.told_apart:
            if sum(row.rate == 1 for row in self.rows) > 2:
                parts.append(
                    f"Validation accuracy, on {self.val_samples} samples, does not tell the temperatures apart."
                )
        elif best is ours:
            parts.append("Validation accuracy peaks there.")
        else:
            parts.append(
                f"Validation accuracy peaks at T = {best.temperature:.3g}: {self._next_to(best, ours, 'that')}."
            )
        if told is not ours:
            parts.append(
                f"With BatchNorm, T = {told.temperature:.3g} and {told.rate:g} times the rate it is "
                f"{self._next_to(told, plain, 'your model')}."
            )
        if self.test_samples < FEW:
            parts.append(
                f"The test part has {self.test_samples} samples only, on which even {may_be_noise(self.test_samples):.0f} points "
                "may be noise: check with more data."
            )
        parts.append(
            f"{self.steps} steps ({self.epochs:.3g} epochs) and {plain.runs} seed{'s'[: plain.runs > 1]} each: a short look. "
            "Longer training may peak at a higher T; ask tstar.recommend with your own number of steps."
        )
        return " ".join(parts)

    def _next_to(self, row: Row, other: Row, what: str) -> str:
        """A row's test accuracy and its difference from another's, in words."""
        points = 100 * (row.test_accuracy - other.test_accuracy)
        size = f"{abs(points):.1f}"
        if size == "0.0":
            return f"{_percent(row)}, the same as {what}"
        noise = within_noise(
            row.test_accuracy,
            other.test_accuracy,
            self.test_samples,
            seeds_error=math.hypot(row.error or 0, other.error or 0),
        )
        return (
            f"{_percent(row)}, {size} points {'above' if points > 0 else 'below'} {what}"
            f"{', within the noise' if noise else ''}"
        )

    def __str__(self) -> str:
        lines = [f"{'T':>14} {'val %':>8} {'test %':>8} {'±':>6} {'n':>3}"]
        for row in self.rows:
            mark = " ← formula" if row is self.formula else ""
            mark += " ← peak" if row is self.best and self.told_apart else ""
            mark += " ← advised" if row is self.advised else ""
            error = "–" if row.error is None else f"{100 * row.error:.2f}"
            gone = f" ({row.diverged} diverged)" if row.diverged else ""
            lines.append(
                f"{row!s:>14} {100 * row.val_accuracy:>8.2f} {100 * row.test_accuracy:>8.2f} "
                f"{error:>6} {row.runs:>3}{gone}{mark}"
            )
        return "\n".join([*lines, "", self.sentence])

    def to_dict(self) -> dict[str, Any]:
        """The check as plain JSON types."""
        return {
            "rows": [vars(row) for row in self.rows],
            "formula_temperature": self.temperature,
            "best_temperature": self.best.temperature,
            "advice": self.advice.to_dict(),
            "steps": self.steps,
            "epochs": self.epochs,
            "seconds": self.seconds,
            "val_samples": self.val_samples,
            "test_samples": self.test_samples,
            "told_apart": self.told_apart,
            "sentence": self.sentence,
        }

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw test accuracy against T, with the formula's T, into an SVG, PDF or PNG file."""
        from tstar.checking.figure import Line, draw

        points = [
            (row.temperature or 1.0, 100 * row.test_accuracy, 100 * (row.error or 0.0))
            for row in self.rows[1:]
            if row.rate == 1
        ]
        line = Line("", points, 100 * self.plain.test_accuracy, self.temperature)
        draw([line], Path(path), f"{self.steps} steps, {self.plain.runs} seeds")


def _percent(row: Row) -> str:
    return f"{100 * row.test_accuracy:.1f} %"
