"""The runs in the layout of the paper's tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tstar.errors import TstarError
from tstar.paper.catalogue import spec
from tstar.paper.own_runs import ROWS, described, mark, task_rows, yours
from tstar.report.records import Records, number
from tstar.report.tables.cells import (
    Block,
    Cell,
    Table,
    filled,
    number_cell,
    short_cell,
    text_cell,
)

if TYPE_CHECKING:
    import pandas as pd

MEASURED = ("datasets", "models", "transformers", "smoothing")
FITTED = ("environments", "corrections", "coefficients")
_TITLES = {
    "datasets": "Every model on every data set, accuracy [%]",
    "models": "Every data set by model, trained from scratch, accuracy [%]",
    "transformers": "Transformers on Caltech101, accuracy [%]",
    "smoothing": "With label smoothing, accuracy [%]",
    "environments": "Coefficients of each environment, without and with BN, and their accuracy [%]",
    "corrections": "Accuracy of each correction [%]: data set left out of the fit (CO), or not (GO)",
    "coefficients": "Temperature determination coefficients, fitted to these runs",
}
_SYMBOLS = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "accuracy": "acc.", "gain": "Δ acc."},
    **{"alpha_bn": "α, BN", "beta_bn": "β, BN", "accuracy_bn": "acc., BN", "avg": "Avg."},
    **{"dataset": "data set", "optimization": "fit"},
}


def paper_tables(records: Records, *, fits: bool = True) -> tuple[list[Table], list[str]]:
    """Every table of the paper that the runs can fill, and why the others are missing."""
    found: list[Table] = []
    missing: list[str] = []
    for name in (*MEASURED, *(FITTED if fits else ())):
        try:
            parts = split(paper_table(name, records))
            # A data set with one model is a column of the first table already.
            several = [t for t in parts if name != "models" or len(t.columns) > t.labels + 1]
            if not several:
                raise TstarError("No data set was run with two models; see the tables above.")
            found += several
        except TstarError as error:
            missing.append(f"{_TITLES[name]}: {error}")
    return found, missing


def split(table: Table) -> list[Table]:
    """A table that is mostly dashes as one for each block, with the columns that the block fills."""
    cells = [cell for block in table.blocks for row in block.rows for cell in row[table.labels :]]
    if len(table.blocks) < 2 or sum(cell.text in ("–", "") for cell in cells) < len(cells) / 2:
        return [table]
    return [
        filled(
            replace(
                table,
                name=f"{table.name}-{place}",
                title=f"{table.title}: {block.heading}",
                blocks=(Block(block.rows),),
            )
        )
        for place, block in enumerate(table.blocks, 1)
    ]


def paper_table(name: str, records: Records) -> Table:
    """One table of the paper, with the rows and columns that the runs fill."""
    frame = yours(name, records.conditions, metric=records.metric)
    return _measured(name, frame, records) if spec(name).marked else _fitted(name, frame, records)


def _measured(name: str, frame: pd.DataFrame, records: Records) -> Table:
    kind = spec(name)
    columns = [c for c in frame.columns if c not in kind.keys and frame[c].notna().any()]
    marks, guessed = mark(frame, name), frame.attrs["interpolated"]
    blocks = []
    for heading, part in _blocks(frame, kind.block):
        shared, about = described(frame, heading)
        rows = [
            (
                Cell(ROWS[line["method"]]),
                *(
                    _about(number_cell(line[c], mark=marks.loc[i, c]), (i, c) in guessed)
                    for c in columns
                ),
            )
            for i, line in part.iterrows()
        ]
        rows += [
            (Cell(label), *(Cell(values.get(c, "")) for c in columns))
            for label, values in about.items()
        ]
        blocks.append(Block(tuple(rows), " · ".join(filter(None, (heading, shared)))))
    note = (
        f"{records.metric.capitalize()} accuracy. Within a block every cell of a column is the mean over the same "
        "conditions, one vote each, and the same seeds; n counts the conditions, and in brackets the runs of one cell. "
        "What was not run in the same conditions is not compared and has a dash. Best in bold, second best underlined, "
        "column by column within a block. ~ marks a value interpolated in ln T between the temperatures of a grid."
    )
    return Table(
        name,
        _TITLES[name],
        ("method", *("Avg." if c == kind.average else str(c) for c in columns)),
        tuple(blocks),
        note,
        heads=tuple(
            (label, *(values.get(str(c), "") for c in columns))
            for label, values in task_rows(frame).items()
        ),
        command=records.command("paper", name),
    )


def _fitted(name: str, frame: pd.DataFrame, records: Records) -> Table:
    keys = [c for c in frame.columns if c in spec(name).keys]
    values = [c for c in frame.columns if c not in keys]
    rows = tuple(
        (
            *(text_cell(line[key]) for key in keys),
            *(
                short_cell(100 * line[c]) if c == "regret" else _fit_cell(name, str(c), line[c])
                for c in values
            ),
        )
        for _, line in frame.iterrows()
    )
    header = [_SYMBOLS.get(str(c), str(c)) for c in (*keys, *values)]
    header = ["regret [points]" if c == "regret" else c for c in header]
    bias = (
        " Test accuracy chose the coefficients, as in the paper: what they gain on the same runs is optimistic."
        if records.metric == "test"
        else ""
    )
    return Table(
        name,
        _TITLES[name],
        tuple(header),
        (Block(rows),),
        f"Differential evolution on {records.metric} accuracy, linear in ln T between temperatures.{bias}",
        labels=len(keys),
        command=records.command("paper", name),
        notes=tuple(f"Not possible: {text}" for text in frame.attrs.get("notes", ())),
    )


def _fit_cell(name: str, column: str, value: float) -> Cell:
    return number_cell(number(value), 4 if name == "coefficients" else 2)


def _about(cell: Cell, guessed: bool) -> Cell:
    return cell._replace(text=f"~{cell.text}") if guessed else cell


def _blocks(frame: pd.DataFrame, column: str | None) -> Iterator[tuple[str, pd.DataFrame]]:
    if column is None:
        yield "", frame
        return
    for heading in dict.fromkeys(frame[column]):
        yield str(heading), frame[frame[column] == heading]
