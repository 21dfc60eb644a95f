"""A table as data: texts, what they sort by, and which are best and second best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import stdev
from typing import NamedTuple

from tstar.paper.catalogue import expected_marks
from tstar.report.records import people


class Cell(NamedTuple):
    """``mark`` is ``"best"``, ``"second"`` or ``""``; ``value`` is what the cell sorts by."""

    text: str
    value: float | str | None = None
    mark: str = ""


@dataclass(frozen=True)
class Block:
    """Rows that belong together under a heading, which may be empty."""

    rows: tuple[tuple[Cell, ...], ...]
    heading: str = ""


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: of its files. title: above it. note: how to read it, and where its numbers come from.
        columns: headers. labels: how many of the first columns are text.
        blocks: the rows. heads: further lines below the header, such as csg and class counts.
        command: what makes its numbers again.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    blocks: tuple[Block, ...]
    note: str = ""
    labels: int = 1
    heads: tuple[tuple[str, ...], ...] = ()
    command: str = ""
    notes: tuple[str, ...] = field(default=())


def filled(table: Table) -> Table:
    """Without the columns that no row fills."""
    rows = [row for block in table.blocks for row in block.rows]
    kept = [
        i
        for i in range(len(table.columns))
        if i < table.labels or any(row[i].text not in ("–", "") for row in rows)
    ]
    return replace(
        table,
        columns=tuple(table.columns[i] for i in kept),
        blocks=tuple(
            replace(block, rows=tuple(tuple(row[i] for i in kept) for row in block.rows))
            for block in table.blocks
        ),
        heads=tuple(tuple(head[i] for i in kept) for head in table.heads),
    )


def number_cell(value: float | None, digits: int = 2, mark: str = "") -> Cell:
    """A number with fixed digits; a dash where there is none."""
    if value is None or math.isnan(value):
        return Cell("–")
    # Plus 0.0: a rounded -0.004 is 0.00, without a sign.
    return Cell(f"{round(value, digits) + 0.0:.{digits}f}", value, mark)


def spread_cell(values: Sequence[float]) -> Cell:
    """The standard deviation of some seeds; a dash for one seed, and never a flat 0.00."""
    if len(values) < 2:
        return Cell("–")
    spread = stdev(values)
    return Cell("< 0.01", spread) if spread < 0.005 else number_cell(spread)


def short_cell(value: float | None) -> Cell:
    """A number in at most four significant digits, as people write it."""
    return Cell("–") if value is None or math.isnan(value) else Cell(people(value), value)


def text_cell(value: object) -> Cell:
    return Cell("") if value is None or value != value else Cell(str(value), str(value))


def ranked(values: Sequence[float | None], digits: int = 2) -> list[str]:
    """The mark of each value: the highest is best, the next lower one second; ties share a mark.

    Values are compared as printed, as the paper does.
    """
    return expected_marks([math.nan if v is None else round(v, digits) for v in values])


def marked(
    rows: Sequence[tuple[Cell, ...]], values: Sequence[float | None]
) -> tuple[tuple[Cell, ...], ...]:
    """Rows whose second cell has the mark of its value; ``None``: not ranked."""
    marks = ranked(values)
    return tuple(
        (row[0], row[1]._replace(mark=m), *row[2:]) for row, m in zip(rows, marks, strict=True)
    )
