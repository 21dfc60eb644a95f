"""From the CSV files to data frames. A cell's mark is kept in the file: ``**best**``, ``_second_``."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tstar.errors import require
from tstar.paper.catalogue import SPECS, spec

if TYPE_CHECKING:
    import pandas as pd

_FOLDER = Path(__file__).with_name("cells")


def tables() -> dict[str, str]:
    """The names of all tables, each with what it shows."""
    return {name: spec.caption for name, spec in SPECS.items()}


def table(name: str) -> pd.DataFrame:
    """A table of the paper, one row per printed row, numbers as printed (accuracies in %).

    >>> float(table("coefficients").set_index("variant").loc["csgcn", "alpha"])
    0.3192
    """
    frame = printed(name)
    for column in frame.columns:
        if column not in spec(name).keys:
            frame[column] = _numbers(frame[column])
    return frame


def marks(name: str) -> pd.DataFrame:
    """The printed mark of every cell of a table: ``"best"`` (bold), ``"second"`` (underlined) or ``""``."""
    return _frame(name, 1)


def printed(name: str) -> pd.DataFrame:
    """A table as text, digit for digit as printed, without the marks."""
    return _frame(name, 0)


def _frame(name: str, part: int) -> pd.DataFrame:
    """Text (0) or mark (1) of every cell; keys are text in both."""
    pd = require("pandas", "fit")
    keys = spec(name).keys
    header, rows = _cells(name)
    return pd.DataFrame(
        [
            [strip(c)[0 if column in keys else part] for column, c in zip(header, row, strict=True)]
            for row in rows
        ],
        columns=list(header),
    )


def page(name: str) -> str:
    """A page about the tables: ``"analysis"`` or ``"discrepancies"`` (made by ``research.paper.analysis``)."""
    return (_FOLDER.parent / f"{name}.md").read_text(encoding="utf-8")


def strip(cell: str) -> tuple[str, str]:
    """A cell's text and its mark."""
    if cell.startswith("**") and cell.endswith("**") and len(cell) > 4:
        return cell[2:-2], "best"
    if cell.startswith("_") and cell.endswith("_") and len(cell) > 2:
        return cell[1:-1], "second"
    return cell, ""


@cache
def _cells(name: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Header and rows of a file, as text."""
    with (_FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return tuple(header), tuple(map(tuple, rows))


def _numbers(column: pd.Series) -> pd.Series:
    """The column as numbers if all of it is numbers (blank: missing), else as it is."""
    pd = require("pandas", "fit")
    try:
        return pd.to_numeric(column.replace("", None))
    except (TypeError, ValueError):
        return column
