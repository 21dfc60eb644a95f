"""The paper's tables, as printed and as runs fill them, in one layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tstar.curves.reading import Metric
from tstar.errors import TstarError
from tstar.paper.catalogue import METHODS, spec
from tstar.paper.loading import marks, printed, table
from tstar.paper.own_runs import ROWS, described, mark, task_rows, yours
from tstar.report.records import Records
from tstar.report.tables.cells import (
    Block,
    Cell,
    Table,
    filled,
    number_cell,
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
HEADINGS = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "accuracy": "acc.", "gain": "Δ acc."},
    **{"alpha_bn": "α, BN", "beta_bn": "β, BN", "accuracy_bn": "acc., BN", "avg": "Avg."},
    **{
        "dataset": "data set",
        "optimization": "fit",
        "regret": "regret [points]",
        "conditions": "n",
    },
}


def paper_tables(records: Records, *, fits: bool = True) -> tuple[list[Table], list[str]]:
    """Every table of the paper that the runs can fill, and why the others are missing."""
    found: list[Table] = []
    missing: list[str] = []
    for name in (*MEASURED, *(FITTED if fits else ())):
        try:
            command = records.command("paper", name)
            parts = split(own_table(name, records.conditions, records.metric, command))
            # A data set with one model is a column of the first table already.
            several = [t for t in parts if name != "models" or len(t.columns) > t.labels + 1]
            if not several:
                raise TstarError("No data set was run with two models; see the tables above.")
            found += several
        except TstarError as error:
            missing.append(f"{_TITLES[name]}: {error}")
    return found, missing


def split(whole: Table) -> list[Table]:
    """A table that is mostly dashes as one for each block, with the columns that the block fills."""
    cells = [cell for block in whole.blocks for row in block.rows for cell in row[whole.labels :]]
    if len(whole.blocks) < 2 or sum(cell.text in ("–", "") for cell in cells) < len(cells) / 2:
        return [whole]
    return [
        filled(
            replace(
                whole,
                name=f"{whole.name}-{place}",
                title=f"{whole.title}: {block.heading}",
                blocks=(Block(block.rows),),
            )
        )
        for place, block in enumerate(whole.blocks, 1)
    ]


def printed_table(name: str) -> Table:
    """One table of the paper, digit for digit."""
    kind, texts, signs = spec(name), printed(name), marks(name)
    labels = [key for key in kind.keys if key != kind.block]
    columns = [c for c in texts.columns if c not in kind.keys]
    blocks = []
    for heading, part in _blocks(texts, kind.block):
        rows = tuple(
            (
                *(
                    Cell(METHODS.get(line[k], line[k]) if k == "method" else line[k])
                    for k in labels
                ),
                *(Cell(line[c], mark=str(signs.loc[i, c])) for c in columns),
            )
            for i, line in part.iterrows()
        )
        blocks.append(Block(rows, heading))
    heads: tuple[tuple[str, ...], ...] = ()
    if name in ("corrections", "datasets"):
        tasks = table("tasks").set_index("dataset").reindex(columns)
        spare = [""] * (len(labels) - 1)
        csg, classes = (
            ["" if x != x else format(x, form) for x in tasks[column]]
            for column, form in (("csg", ".2f"), ("num_classes", "g"))
        )
        heads = (("CSG", *spare, *csg), ("CN", *spare, *classes))
    return Table(
        name,
        f"{kind.caption} (the paper)",
        tuple(HEADINGS.get(c, c) for c in (*labels, *columns)),
        tuple(blocks),
        labels=len(columns) + len(labels)
        if name in ("characteristics", "footnotes")
        else len(labels),
        heads=heads,
    )


def own_table(name: str, runs: Any, metric: Metric = "test", command: str = "") -> Table:
    """One table of the paper, with the rows and columns that your own runs fill."""
    frame = yours(name, runs, metric=metric)
    made = _measured if spec(name).marked else _fitted
    return replace(made(name, frame, metric), command=command)


def _measured(name: str, frame: pd.DataFrame, metric: Metric) -> Table:
    kind = spec(name)
    columns = [c for c in frame.columns if c not in kind.keys and frame[c].notna().any()]
    signs, guessed = mark(frame, name), frame.attrs["interpolated"]
    blocks = []
    for heading, part in _blocks(frame, kind.block):
        shared, about = described(frame, heading)
        rows = [
            (
                Cell(ROWS[line["method"]]),
                *(
                    _about(number_cell(line[c], mark=signs.loc[i, c]), (i, c) in guessed)
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
    return Table(
        name,
        _TITLES[name],
        ("method", *(HEADINGS.get(c, c) for c in columns)),
        tuple(blocks),
        f"{metric.capitalize()} accuracy. Within a block every cell of a column is the mean over the same "
        "conditions, one vote each, and the same seeds; n counts the conditions, and in brackets the runs of one cell. "
        "What was not run in the same conditions is not compared and has a dash. Best in bold, second best underlined, "
        "column by column within a block. ~ marks a value interpolated in ln T between the temperatures of a grid.",
        heads=tuple(
            (label, *(values.get(c, "") for c in columns))
            for label, values in task_rows(frame).items()
        ),
    )


def _fitted(name: str, frame: pd.DataFrame, metric: Metric) -> Table:
    keys = [c for c in frame.columns if c in spec(name).keys]
    values = [c for c in frame.columns if c not in keys]
    digits = 4 if name == "coefficients" else 2
    rows = tuple(
        (
            *(text_cell(line[key]) for key in keys),
            *(
                number_cell(
                    line[c] * (100 if c == "regret" else 1), 0 if c == "conditions" else digits
                )
                for c in values
            ),
        )
        for _, line in frame.iterrows()
    )
    bias = (
        " Test accuracy chose the coefficients, as in the paper: what they gain on the same runs is optimistic."
        if metric == "test"
        else ""
    )
    return Table(
        name,
        _TITLES[name],
        tuple(HEADINGS.get(c, c) for c in (*keys, *values)),
        (Block(rows),),
        f"Differential evolution on {metric} accuracy, linear in ln T between temperatures.{bias}"
        + (_MATCHED.format(frame.attrs["averaged"]) if name == "environments" else ""),
        labels=len(keys),
        notes=tuple(f"Not possible: {text}" for text in frame.attrs.get("notes", ())),
    )


_MATCHED = (
    " Where a data set was run without BN and with it, both sides are fitted to the n conditions and the seeds that they "
    "share, and Avg. and S.D. are over these alone ({} here)."
)


def _about(cell: Cell, guessed: bool) -> Cell:
    return cell._replace(text=f"~{cell.text}") if guessed else cell


def _blocks(frame: pd.DataFrame, column: str | None) -> Iterator[tuple[str, pd.DataFrame]]:
    if column is None:
        yield "", frame
        return
    for heading in dict.fromkeys(frame[column]):
        yield str(heading), frame[frame[column] == heading]
