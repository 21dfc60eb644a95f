"""Tables of ours: every condition with its best and its recommended T, and every method."""

from __future__ import annotations

from typing import Any

import numpy as np

from tstar.errors import TstarError
from tstar.report.records import Records, Sweep, number, text
from tstar.report.tables.cells import (
    Block,
    Cell,
    Table,
    number_cell,
    ranked,
    short_cell,
    text_cell,
)


def conditions_table(records: Records) -> Table:
    """One row a condition of the grids."""
    if not records.sweeps:
        raise TstarError("No grid of fixed temperatures was run.")
    return Table(
        "conditions",
        "Every condition: best T and the formula's T",
        (
            *("data set", "model", "setting", "BN", "M", "K", "csg", "runs", "diverged", "best T"),
            *("accuracy there", "± s.d.", "formula's T", "accuracy there", "regret", "at T = 1"),
        ),
        (Block(tuple(_condition(sweep) for sweep in records.sweeps)),),
        f"{records.metric.capitalize()} accuracy [%], mean over seeds. The best T of the grid was chosen by "
        f"{'validation' if records.chosen_on == 'val' else records.chosen_on} accuracy"
        + (
            ", so its accuracy is not flattered by the choice, and the regret may be negative."
            if records.chosen_on != records.metric
            else ", the same that is shown, so it is somewhat flattered by the choice."
        )
        + " The formula's T presupposes BN and is shown with it only; accuracy there is interpolated. "
        "Diverged runs count as chance.",
        labels=4,
        command=f"tstar report {records.name} --metric {records.metric}",
    )


def _condition(sweep: Sweep) -> tuple[Cell, ...]:
    facts, best = sweep.facts, sweep.best
    seeds = sweep.seen(best)
    one = sweep.index_of(1)
    bn = facts.get("norm") == "batch"
    T = sweep.recommended if bn else None
    there = None if T is None else 100 * sweep.at(T)
    return (
        text_cell(facts.get("dataset")),
        text_cell(facts.get("model")),
        Cell(sweep.setting, sweep.setting),
        Cell("yes" if bn else "no", str(facts.get("norm"))),
        short_cell(number(facts.get("num_features"))),
        short_cell(number(facts.get("num_classes"))),
        short_cell(number(facts.get("csg"))),
        Cell(str(sweep.curve.runs), sweep.curve.runs),
        Cell(str(sweep.curve.diverged), sweep.curve.diverged),
        short_cell(sweep.temperatures[best]),
        number_cell(100 * sweep.mean(best)),
        number_cell(100 * float(np.std(seeds, ddof=1)) if len(seeds) > 1 else None),
        short_cell(T),
        number_cell(there),
        number_cell(None if there is None else 100 * sweep.mean(best) - there),
        number_cell(None if one is None else 100 * sweep.mean(one)),
    )


def methods_table(records: Records) -> Table:
    """Every method but the grids, a block a data set, model and M."""
    frame = records.frame
    if "method" not in frame.columns or not (frame["method"] != "fixed").any():
        raise TstarError("No method was run beside fixed temperatures.")
    others = frame[frame["method"].notna() & (frame["method"] != "fixed")]
    names = [n for n in ("dataset", "model", "num_features", "scenario", "lr") if n in others]
    blocks = []
    for key, part in others.groupby(names, dropna=False, sort=True):
        facts = dict(zip(names, key, strict=True))
        rows = [
            _method(str(name), runs.to_dict("records"), records.metric)
            for name, runs in part.groupby("method", sort=False)
        ]
        # A method with a failed run is not ranked: leaving its failures out would flatter it.
        marks = ranked([None if row[3].value else _value(row[1]) for row in rows])
        marked = tuple(
            (row[0], row[1]._replace(mark=m), *row[2:]) for row, m in zip(rows, marks, strict=True)
        )
        width = text(facts.get("num_features"))
        heading = [text(facts.get("dataset")), text(facts.get("model")), f"M = {width}"]
        if len(others["lr"].dropna().unique() if "lr" in others else ()) > 1:
            heading.append(f"lr = {text(facts.get('lr'))}")
        if facts.get("scenario") not in (None, "scratch"):
            heading.append(text(facts["scenario"]))
        blocks.append(Block(marked, " · ".join(part for part in heading if part)))
    return Table(
        "methods",
        "Methods that were run by name",
        ("method", "accuracy [%]", "± s.d.", "failed", "n", "T", "NLL", "ECE", "trainings"),
        tuple(blocks),
        f"{records.metric.capitalize()} accuracy, mean over n seeds; diverged runs count as chance. Best in bold, "
        "second best underlined within a block; a method with failed runs is not ranked.",
        command=f"tstar report {records.name} --metric {records.metric}",
    )


def _method(name: str, runs: list[dict[str, Any]], metric: str) -> tuple[Cell, ...]:
    scores = [s for run in runs if (s := _score(run, metric)) is not None]

    def mean(column: str) -> float | None:
        values = [v for run in runs if (v := number(run.get(column))) is not None]
        return float(np.mean(values)) if values else None

    failed = sum(run.get("status") == "failed" for run in runs)
    return (
        Cell(name, name),
        number_cell(float(np.mean(scores)) if scores else None),
        number_cell(float(np.std(scores, ddof=1)) if len(scores) > 1 else None),
        Cell(str(failed), failed),
        Cell(str(len(scores)), len(scores)),
        short_cell(mean("temperature")),
        number_cell(mean("nll"), 3),
        number_cell(mean("ece"), 3),
        short_cell(mean("trainings")),
    )


def _score(run: dict[str, Any], metric: str) -> float | None:
    """Accuracy [%] of a run that ended; chance where it diverged."""
    if run.get("status") == "diverged":
        classes = number(run.get("num_classes"))
        return None if not classes else 100 / classes
    value = number(run.get(f"{metric}_accuracy"))
    return None if run.get("status", "done") != "done" or value is None else 100 * value


def _value(cell: Cell) -> float | None:
    return cell.value if isinstance(cell.value, float) else None
