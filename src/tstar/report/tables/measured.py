"""The runs in the layout of the paper's tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tstar.curves import FACTS
from tstar.curves.reading import FOLLOW, TREATMENT
from tstar.errors import TstarError, require
from tstar.paper.catalogue import METHODS, spec
from tstar.paper.own_runs import dataset_name, mark, yours
from tstar.report.records import Records, number
from tstar.report.tables.cells import Block, Cell, Table, number_cell, short_cell, text_cell

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
    **{"dataset": "data set", "optimisation": "fit"},
}


def paper_tables(records: Records, *, fits: bool = True) -> tuple[list[Table], list[str]]:
    """Every table of the paper that the runs can fill, and why the others are missing."""
    found: list[Table] = []
    missing: list[str] = []
    for name in (*MEASURED, *(FITTED if fits else ())):
        try:
            found.append(paper_table(name, records))
        except TstarError as error:
            missing.append(f"{_TITLES[name]}: {error}")
    return found, missing


def paper_table(name: str, records: Records) -> Table:
    """One table of the paper, with the rows and columns that the runs fill."""
    if not spec(name).marked:
        return _fitted(name, yours(name, condensed(records), metric=records.metric), records)
    try:
        frame = yours(name, condensed(records), metric=records.metric)
    except TstarError as error:
        raise TstarError(
            "No run belongs to a row of this table (T = 1, √M, Insert LN, or ours with BN)."
        ) from error
    return _measured(name, frame, records)


def condensed(records: Records) -> pd.DataFrame:
    """The runs with one row for all seeds at a temperature: the mean of them.

    These tables average over seeds before anything else, so that they come out the same; a store of
    tens of thousands of runs becomes one of hundreds.
    """
    pd = require("pandas", "fit")
    column = f"{records.metric}_accuracy"
    rows = [
        {
            **sweep.facts,
            "method": "fixed",
            "temperature": T,
            column: sweep.mean(i),
            # A condition in which nothing trained must still be known as such.
            "status": "diverged" if sweep.curve.diverged == sweep.curve.runs else "done",
        }
        for sweep in records.sweeps
        for i, T in enumerate(sweep.temperatures)
    ]
    frame = records.frame
    others = frame[frame["method"] != "fixed"] if "method" in frame.columns else frame.iloc[:0]
    kept = [
        name
        for name in (*FACTS, *FOLLOW, *TREATMENT, "temperature", "status", column)
        if name in others
    ]
    return pd.concat([pd.DataFrame(rows), others[kept]], ignore_index=True)


def _measured(name: str, frame: pd.DataFrame, records: Records) -> Table:
    kind = spec(name)
    columns = [c for c in frame.columns if c not in kind.keys and frame[c].notna().any()]
    if len(columns) == 2 and kind.average in columns:
        columns.remove(kind.average)  # an average of one column says nothing
    if not columns:
        raise TstarError("No run belongs to a row of this table.")
    marks, guessed = mark(frame, name), frame.attrs.get("interpolated", set())
    blocks = []
    for heading, part in _blocks(frame, kind.block):
        kept = part[part[columns].notna().any(axis=1)]
        if kept.empty:
            continue
        rows = tuple(
            (
                Cell(METHODS.get(line["method"], str(line["method"]))),
                *(
                    _about(number_cell(line[c], mark=marks.loc[i, c]), (i, c) in guessed)
                    for c in columns
                ),
            )
            for i, line in kept.iterrows()
        )
        blocks.append(Block(rows, heading))
    note = (
        f"{records.metric.capitalize()} accuracy, mean over seeds, widths M and settings. Best in bold, second "
        "best underlined, column by column within a block. ~ marks a value that is interpolated between the "
        "temperatures of a grid; T = 1 and √M are without BN, ours are with BN."
    )
    return Table(
        name,
        _TITLES[name],
        ("method", *("Avg." if c == kind.average else str(c) for c in columns)),
        tuple(blocks),
        note,
        heads=_tasks(records, columns) if name in ("datasets", "smoothing") else (),
        command=f"tstar paper {name} --runs {records.name} --metric {records.metric}",
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
        f"Differential evolution on {records.metric} accuracy, interpolated linearly in T.{bias}",
        labels=len(keys),
        command=f"tstar paper {name} --runs {records.name} --metric {records.metric}",
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


def _tasks(records: Records, columns: list[str]) -> tuple[tuple[str, ...], ...]:
    """The paper's two lines below the data sets: csg and number of classes."""
    runs = records.frame
    if "csg" not in runs or "num_classes" not in runs:
        return ()
    facts: dict[str, tuple[float | None, float | None]] = {}
    for name, part in runs.groupby("dataset"):
        csg, classes = (part[c].astype(float).dropna() for c in ("csg", "num_classes"))
        facts[dataset_name(str(name))] = (
            float(csg.iloc[0]) if len(csg) else None,
            float(classes.iloc[0]) if len(classes) else None,
        )

    def shown(value: float | None, form: str) -> str:
        return "" if value is None or math.isnan(value) else format(value, form)

    rows = [facts.get(str(column), (None, None)) for column in columns]
    return (
        ("csg", *(shown(csg, ".2f") for csg, _ in rows)),
        ("classes", *(shown(classes, ".0f") for _, classes in rows)),
    )
