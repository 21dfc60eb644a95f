"""From the files to data frames. A cell keeps its mark there: ``**best**``, ``_second_``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tstar.imports import require
from tstar.lab.paper.catalogue import SPECS, rows_of, spec

if TYPE_CHECKING:
    import pandas as pd


def tables() -> dict[str, str]:
    """The names of all tables, each with what it shows."""
    return {name: spec.caption for name, spec in SPECS.items()}


def table(name: str) -> pd.DataFrame:
    """A table of the paper, one row per printed row, numbers as printed (accuracies in %).

    >>> float(table("coefficients").set_index("variant").loc["csgcn", "alpha"])
    0.3192
    """
    pd, frame = require("pandas", "lab"), printed(name)
    for column in (c for c in frame.columns if c not in spec(name).keys):
        try:  # a column is numbers if all of it is (blank: missing), else text
            frame[column] = pd.to_numeric(frame[column].replace("", None))
        except (TypeError, ValueError):
            continue
    return frame


def marks(name: str) -> pd.DataFrame:
    """The mark of every cell of a table: ``"best"`` (bold), ``"second"`` (underlined) or none."""
    return _frame(name, 1)


def printed(name: str) -> pd.DataFrame:
    """A table as text, digit for digit as printed, without the marks."""
    return _frame(name, 0)


def _frame(name: str, part: int) -> pd.DataFrame:
    """Text (0) or mark (1) of every cell; keys are text in both."""
    keys = spec(name).keys
    header, *rows = rows_of(f"cells/{name}")
    return require("pandas", "lab").DataFrame(
        [
            [strip(c)[0 if column in keys else part] for column, c in zip(header, row, strict=True)]
            for row in rows
        ],
        columns=list(header),
    )


def strip(cell: str) -> tuple[str, str]:
    """A cell's text and its mark."""
    for sign, mark in (("**", "best"), ("_", "second")):
        if cell.startswith(sign) and cell.endswith(sign) and len(cell) > 2 * len(sign):
            return cell.strip(sign), mark
    return cell, ""


def model_name(name: str) -> str:
    """The paper's name of a standard model; its own name if the paper has none."""
    known = {own: model for model, own, *_ in rows_of("cells/widths")}
    return known.get(name.rpartition("/")[2], name)
