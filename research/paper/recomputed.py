"""Does the paper's print agree with its own cells? Averages, deviations and marks, recomputed.

Cells are printed to two digits, so a recomputed number may differ from the printed one by a bound
that follows from rounding alone: 0.005 for the print, plus 0.005 for each cell of a difference;
a mean and a population S.D. move by at most as much as their cells do. What exceeds the bound is
an error of print or of arithmetic; what only rounds to another last digit is listed apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tstar.lab.paper.catalogue import SPECS, Printed, expected_marks, marks, table

if TYPE_CHECKING:
    import pandas as pd

What = Literal["average", "deviation", "difference", "mark"]
_HALF_DIGIT = 0.005


@dataclass(frozen=True)
class Check:
    """One printed number or mark, and what the cells give in its place."""

    table: str
    row: str
    column: str
    what: What
    printed: float | str
    recomputed: float | str
    tolerance: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether rounding of the cells explains the difference, if there is one."""
        if isinstance(self.printed, str) or isinstance(self.recomputed, str):
            return self.printed == self.recomputed
        return abs(self.printed - self.recomputed) <= self.tolerance + 1e-9

    @property
    def exact(self) -> bool:
        """Whether the recomputed number rounds to the printed one."""
        if isinstance(self.printed, str) or isinstance(self.recomputed, str):
            return self.agrees
        return abs(self.printed - self.recomputed) <= _HALF_DIGIT + 1e-9

    def __str__(self) -> str:
        return (
            f"{self.table}, {self.row}, {self.column}: {self.what} printed "
            f"{_show(self.printed)}, the cells give {_show(self.recomputed)}"
        )


def checks() -> list[Check]:
    """Every average, standard deviation, difference and mark of the paper, each recomputed."""
    found = list(_environments())
    for kind in SPECS.values():
        if kind.average:
            found += _averages(kind)
        if kind.marked:
            found += _marks(kind)
    return found


def discrepancies() -> list[Check]:
    """The checks that rounding cannot explain."""
    return [check for check in checks() if not check.agrees]


def _averages(kind: Printed) -> Iterator[Check]:
    for _, line in table(kind.name).iterrows():
        cells = [float(line[column]) for column in kind.values]
        yield Check(
            kind.name,
            _row(kind, line),
            str(kind.average),
            "average",
            float(line[str(kind.average)]),
            math.fsum(cells) / len(cells),
            2 * _HALF_DIGIT,
        )


def _marks(kind: Printed) -> Iterator[Check]:
    """Marks column by column within a block; the average's marks follow the printed averages."""
    frame, printed = table(kind.name), marks(kind.name)
    blocks = [frame] if kind.block is None else [part for _, part in frame.groupby(kind.block)]
    columns = kind.values + ((kind.average,) if kind.average else ())
    for part in blocks:
        for column in columns:
            for index, mark in zip(part.index, expected_marks(part[column].tolist()), strict=True):
                row = _row(kind, frame.loc[index])
                yield Check(kind.name, row, column, "mark", printed.loc[index, column], mark)


def _environments() -> Iterator[Check]:
    """The table of environments: Δ of each row, Avg. and S.D. of each column, the two bold S.D."""
    kind = SPECS["environments"]
    frame, printed = table(kind.name), marks(kind.name)
    rows = frame[frame["dataset"] != ""]
    for _, line in rows.iterrows():
        change = line["accuracy_bn"] - line["accuracy"]
        yield Check(
            kind.name, _row(kind, line), "gain", "difference", line["gain"], change, 3 * _HALF_DIGIT
        )
    for _, line in frame[frame["dataset"] == ""].iterrows():
        average = line["model"] == "Avg."
        for column in kind.values:
            cells = rows[column].tolist()
            value = math.fsum(cells) / len(cells) if average else population_deviation(cells)
            yield Check(
                kind.name,
                line["model"],
                column,
                "average" if average else "deviation",
                line[column],
                value,
                2 * _HALF_DIGIT,
            )
    deviations = frame[frame["model"] == "S.D."].iloc[0]
    bold = printed.loc[deviations.name]
    for name in ("alpha", "beta"):
        for column, other in ((name, f"{name}_bn"), (f"{name}_bn", name)):
            mark = "best" if deviations[column] < deviations[other] else ""
            yield Check(kind.name, "S.D.", column, "mark", bold[column], mark)


def population_deviation(values: Sequence[float]) -> float:
    """sqrt(Σ(x − mean)²/n): the paper's S.D. divides by n, not by n − 1."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def _row(kind: Printed, line: pd.Series) -> str:
    return " · ".join(str(line[key]) for key in kind.keys if line[key] != "")


def _show(value: float | str) -> str:
    return (value or "no mark") if isinstance(value, str) else f"{value + 0.0:.3f}"
