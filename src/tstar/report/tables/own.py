"""Tables of ours: every condition with its best T and the law's, and every method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tstar.curves import FACTS
from tstar.curves.resampling import Array, estimate
from tstar.errors import TstarError
from tstar.evidence.regret import RULES, number
from tstar.formula.coefficients import VARIANTS
from tstar.report.records import Records, Sweep, said, text
from tstar.report.tables.cells import (
    Block,
    Cell,
    Table,
    filled,
    marked,
    number_cell,
    short_cell,
    spread_cell,
    text_cell,
)
from tstar.sweep.columns import json_object


def advice_table(records: Records) -> Table:
    """The law's T beside the baselines, the paper's variants and the best T, on the same conditions and seeds."""
    judged = [s for s in records.with_norm("batch", 3) if s.recommended is not None]
    both = [s for s in judged if s.condition.plain_by_seed(s.metric).keys() & set(s.curve.seeds)]
    sweeps = both or judged
    if not sweeps:
        raise TstarError("No condition has BN, three temperatures and a known M.")
    rows: dict[str, list[Array]] = {}
    for sweep in sweeps:
        for name, by_seed in _rivals(sweep, plain=bool(both)).items():
            rows.setdefault(name, []).append(by_seed)
    names = [str(sweep.facts.get("dataset")) for sweep in sweeps]
    base, best = rows["plain" if both else "BN, T = 1"], rows[_BEST]
    cells = []
    for name, values in rows.items():
        if len(values) < len(sweeps):
            continue  # not matched: not compared
        gains = [100 * (a - b) for a, b in zip(values, base, strict=True)]
        left = [100 * (b - a) for a, b in zip(values, best, strict=True)]
        gain, regret = estimate(gains, names), estimate(left, names)
        first = values is base
        cells.append(
            (
                Cell(name),
                number_cell(100 * float(np.mean([v.mean() for v in values]))),
                Cell("–") if first else Cell(f"{gain.value:+.2f}", gain.value),
                Cell("–") if first else Cell(f"{gain.low:+.2f} to {gain.high:+.2f}"),
                Cell("–") if first else Cell(f"{sum(float(g.mean()) > 0 for g in gains)}"),
                Cell("–") if name == _BEST else number_cell(regret.value),
                Cell("a grid of runs" if name == _BEST else "none"),
            )
        )
    shown = marked(cells, [_value(row[1]) if row[0].text != _BEST else None for row in cells])
    over = "plain" if both else "BN, T = 1"
    return Table(
        "advice",
        "The law's T beside its rivals",
        (
            "",
            "accuracy [%]",
            f"over {over}",
            "95 % interval",
            "better in",
            "below best T",
            "search",
        ),
        (Block(shown),),
        f"{records.metric.capitalize()} accuracy; differences in points. Every row is the mean over the same "
        f"{len(sweeps)} conditions ({_where(len(sweeps), len(judged), bool(both))}), one vote each, and the same seeds. "
        f"The law: {records.formula}. Best T: of the grid, by {_CHOSEN[records.chosen_on]} accuracy. Between the "
        "temperatures of the grid accuracy is linear in ln T, and constant outside it. Intervals: bootstrap over data "
        "sets, conditions and seeds.",
        command=records.command("report"),
    )


_BEST = "BN, best T of the grid"
_CHOSEN = {"val": "validation", "test": "test"}


def _where(compared: int, judged: int, plain: bool) -> str:
    if not plain:
        return "plain was not run in any of them"
    return "all with BN" if compared == judged else f"of {judged} with BN, those that ran plain too"


def _rivals(sweep: Sweep, *, plain: bool) -> dict[str, Array]:
    """Accuracy of every rival, a number for each seed that all of them have."""
    curve, metric = sweep.curve.matched(), sweep.metric
    assert sweep.recommended is not None
    found: dict[str, dict[int, float]] = {}
    if plain:
        found["plain"] = sweep.condition.plain_by_seed(metric)
    if curve.index_of(1.0) is not None:
        found["BN, T = 1"] = curve.by_seed(1.0, metric)
    elif not plain:
        found["BN, T = 1"] = curve.at_by_seed(1.0, metric)
    found["BN, the law's T"] = curve.at_by_seed(sweep.recommended, metric)
    if sweep.facts.get("num_classes") is not None:
        for variant in VARIANTS:
            T = RULES[f"ours-{variant}"](sweep.facts)
            name = "" if variant == "base" else f"_{variant}"
            found[f"BN, Hasegawa & Sakai T*{name}"] = curve.at_by_seed(T, metric)
    found[_BEST] = curve.at_by_seed(curve.best, metric)
    common = sorted(set.intersection(*(set(by_seed) for by_seed in found.values())))
    if not common:  # no seed has the whole grid: means are all there is
        return {name: np.array([np.mean([*v.values()])]) for name, v in found.items()}
    return {name: np.array([v[seed] for seed in common]) for name, v in found.items()}


def conditions_table(records: Records) -> Table:
    """One row per condition of the grids."""
    if not records.sweeps:
        raise TstarError("No grid of fixed temperatures was run.")
    return Table(
        "conditions",
        "Every condition: the best T and the law's",
        (
            *("data set", "model", "setting", "BN", "M", "K", "csg", "runs", "diverged", "best T"),
            *("accuracy there", "± s.d.", "law's T", "accuracy there", "regret", "at T = 1"),
        ),
        (Block(tuple(_condition(sweep) for sweep in records.sweeps)),),
        f"{records.metric.capitalize()} accuracy [%], mean over seeds. The best T of the grid was chosen by "
        f"{_CHOSEN[records.chosen_on]} accuracy"
        + (
            ", so its accuracy is not flattered by the choice, and the regret may be negative."
            if records.chosen_on != records.metric
            else ", the same that is shown, so it is somewhat flattered by the choice."
        )
        + " The law's T presupposes BN and is shown with it only; accuracy there is interpolated in ln T, and * marks a T "
        "outside the grid, where it is taken as constant. Diverged runs count as chance.",
        labels=4,
        command=records.command("report"),
    )


def _condition(sweep: Sweep) -> tuple[Cell, ...]:
    facts, best = sweep.facts, sweep.best
    seeds = sweep.seen(best)
    one = sweep.index_of(1)
    bn = facts.get("norm") == "batch"
    T = sweep.recommended if bn else None
    judged = None if T is None else sweep.judged(T)
    return (
        text_cell(facts.get("dataset")),
        text_cell(facts.get("model")),
        Cell(sweep.setting, sweep.setting),
        Cell("yes" if bn else "no", str(facts.get("norm"))),
        short_cell(number(facts.get("num_features"))),
        short_cell(number(facts.get("num_classes"))),
        number_cell(number(facts.get("csg")), 3),
        Cell(str(sweep.curve.runs), sweep.curve.runs),
        Cell(str(sweep.curve.diverged), sweep.curve.diverged),
        short_cell(sweep.temperatures[best]),
        number_cell(100 * sweep.mean(best)),
        spread_cell([100 * float(x) for x in seeds]),
        _starred(number_cell(T), judged is not None and judged.extrapolated),
        number_cell(None if judged is None else 100 * judged.accuracy),
        number_cell(None if judged is None else judged.regret),
        number_cell(None if one is None else 100 * sweep.mean(one)),
    )


def _starred(cell: Cell, outside: bool) -> Cell:
    return cell._replace(text=f"{cell.text}*") if outside else cell


def methods_table(records: Records) -> Table:
    """Every method but the grids, a block for each condition."""
    frame = records.frame
    if "method" not in frame.columns or not (frame["method"] != "fixed").any():
        raise TstarError("No method was run beside fixed temperatures.")
    others = frame[frame["method"].notna() & (frame["method"] != "fixed")]
    # A run that failed or diverged early has no length of its own.
    names = [n for n in FACTS if n in others and n not in ("epochs", "steps", "num_train")]
    several = [n for n in names[1:] if others[n].nunique(dropna=False) > 1]
    blocks = []
    for key, part in others.groupby(names, dropna=False, sort=True):
        facts = dict(zip(names, key, strict=True))
        runs = {
            str(name): own.to_dict("records") for name, own in part.groupby("method", sort=False)
        }
        rows = [_method(name, own, records.metric) for name, own in runs.items()]
        # Ranked are methods with the same seeds, all of them finished: leaving failures out would flatter.
        seeds = [frozenset(run.get("seed") for run in own) for own in runs.values()]
        most = max(seeds, key=lambda s: (seeds.count(s), len(s)))
        values = [
            None if row[3].value or own != most else _value(row[1])
            for row, own in zip(rows, seeds, strict=True)
        ]
        width = text(facts.get("num_features"))
        heading = [text(facts.get("dataset")), text(facts.get("model")), f"M = {width}"]
        heading += [
            said(name, facts[name])
            for name in several
            if name not in ("model", "num_features") and text(facts[name])
        ]
        blocks.append(Block(marked(rows, values), " · ".join(part for part in heading if part)))
    table = filled(
        Table(
            "methods",
            "Methods that were run by name",
            (
                *(
                    "method",
                    "accuracy [%]",
                    "± s.d.",
                    "failed",
                    "n",
                    "T",
                    "lr factor",
                    "NLL",
                    "ECE",
                ),
                "trainings",
            ),
            tuple(blocks),
            f"{records.metric.capitalize()} accuracy, mean over n seeds; diverged runs count as chance. Best in bold, "
            "second best underlined within a block; a method with failed runs or with other seeds is not ranked.",
            command=records.command("report"),
        )
    )
    return replace(table, note=table.note + (_FACTOR if "lr factor" in table.columns else ""))


_FACTOR = " lr factor: what the method multiplied the learning rate of its block by; a dash where it recorded none."


def _recorded(runs: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    """The numbers of that name that the method recorded beside its scores."""
    found = (number(json_object(run.get("extra")).get(name)) for run in runs)
    return [value for value in found if value is not None]


def _method(name: str, runs: list[dict[str, Any]], metric: str) -> tuple[Cell, ...]:
    scores = [s for run in runs if (s := _score(run, metric)) is not None]

    def mean(column: str) -> float | None:
        values = [v for run in runs if (v := number(run.get(column))) is not None]
        return float(np.mean(values)) if values else None

    failed = sum(run.get("status") == "failed" for run in runs)
    factors, left = _recorded(runs, "lr_factor"), _recorded(runs, "left")
    return (
        Cell(f"{name}: left as it is" if left and all(left) else name, name),
        number_cell(float(np.mean(scores)) if scores else None),
        spread_cell(scores),
        Cell(str(failed), failed),
        Cell(str(len(scores)), len(scores)),
        short_cell(mean("temperature")),
        short_cell(float(np.mean(factors)) if factors else None),
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
