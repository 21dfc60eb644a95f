"""The paper's tables, as printed and as runs fill them: like is compared with like.

Within a column every row averages the same conditions and seeds, one condition one vote. A row
that was run in too few of them is not compared, and has a dash.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from tstar.errors import TstarError, unknown
from tstar.formula import VARIANTS
from tstar.lab.curves import Condition, conditions, read
from tstar.lab.curves.conditions import Average
from tstar.lab.curves.reading import Metric
from tstar.lab.fitting import coefficient_table, correction_table, per_environment
from tstar.lab.paper.catalogue import METHODS, Spec, dataset_name, spec
from tstar.lab.paper.loading import marks, model_name, printed
from tstar.lab.report.law import law, number, of_paper
from tstar.lab.report.records import Records, text
from tstar.lab.report.tables import Table, marked

FITTED = {
    "environments": per_environment,
    "corrections": correction_table,
    "coefficients": coefficient_table,
}
_TITLES = {
    "datasets": "Every model on every data set, accuracy [%]",
    "models": "Every data set by model, trained from scratch, accuracy [%]",
    "transformers": "Transformers on Caltech101, accuracy [%]",
    "smoothing": "With label smoothing, accuracy [%]",
    "environments": "Coefficients of each environment, without and with BN, and their accuracy [%]",
    "corrections": "Accuracy of each correction [%], fitted without the data set (CO) or with (GO)",
    "coefficients": "Temperature determination coefficients, fitted to these runs",
}
HEADINGS = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "accuracy": "acc."},
    **{"alpha_bn": "α, BN", "beta_bn": "β, BN", "accuracy_bn": "acc., BN", "avg": "Avg."},
    **{"dataset": "data set", "optimization": "fit", "regret": "regret [points]"},
    **{"conditions": "n", "gain": "Δ acc."},
}
# The rows of a table of own runs: the paper's, and the two that a user wants to know.
ROWS = {
    "T=1": "plain",
    "T=sqrt(M)": "T = √M",
    "Insert LN": "Insert LN",
    "BN, T=1": "BN, T = 1",
    "base": "BN, Hasegawa & Sakai T*",
    **{name: f"BN, Hasegawa & Sakai T*_{name}" for name in ("csg", "cn", "csgcn")},
    "law": "BN, the law's T",
}
_CORE = ("T=1", "BN, T=1", "law")
_NAMES = {
    **{"default": "T=1", "label-smoothing": "T=1", "sqrt-m": "T=sqrt(M)"},
    **{"insert-ln": "Insert LN", **{f"ours-{name}": name for name in VARIANTS}},
}
# What a training may differ in from the paper's of the same name.
_ABOUT = {
    **{"size": "pixels", "samples": "samples", "epochs": "epochs", "steps": "steps"},
    **{"csg": "csg", "num_classes": "classes"},
}
_TRANSFORMER = re.compile(r"vit|swin|deit|beit|bert|former|minilm", re.IGNORECASE)
_RESULTS = (
    "{} accuracy, {} over seeds. Every cell of a column is the mean over the same conditions, one "
    "vote each, and the same seeds; n counts the conditions, and in brackets the runs of one cell. "
    "What was not run in the same conditions is not compared and has a dash. Best in bold, second "
    "best underlined. ~ marks a value interpolated in ln T between the temperatures of a grid."
)
_ENVIRONMENTS = (
    " If a data set was run without BN and with it, both sides are fitted to the n conditions and "
    "the seeds that they share. In brackets: all values that the noise of the seeds cannot tell "
    "from the fit. If they reach the bound of the search, α and β are not identified: any pair "
    "on that line is as good. Avg. and S.D. are over the {averaged} environments of both sides, "
    "those of α and β over the {identified} that are identified."
)


def paper_tables(records: Records, *, fits: bool = True) -> tuple[list[Table], list[str]]:
    """Every table of the paper that the runs can fill, and why the others are missing."""
    found: list[Table] = []
    missing: list[str] = []
    for name in _TITLES if fits else (name for name in _TITLES if name not in FITTED):
        try:
            made = own_tables(name, records.conditions, records.metric, average=records.average)
            # A data set with one model is a column of the first table already.
            several = [t for t in made if name != "models" or len(t.frame.columns) > 2]
            if not several:
                raise TstarError("No data set was run with two models; see the tables above.")
            found += several
        except TstarError as error:
            missing.append(f"{_TITLES[name]}: {error}")
    return found, missing


def printed_tables(name: str) -> list[Table]:
    """One table of the paper, digit for digit; each of its blocks is a table."""
    kind, texts = spec(name), printed(name).rename(columns=HEADINGS)
    signs = marks(name).rename(columns=HEADINGS)
    if "method" in texts and kind.marked:
        texts["method"] = texts["method"].replace(METHODS)
    keys = [HEADINGS.get(key, key) for key in kind.keys]
    block = keys[0] if kind.block else None
    plain = name in ("characteristics", "footnotes")
    made = []
    for heading, part in _blocks(texts, block):
        shown = part.drop(columns=[block] if block else [])
        found = signs.loc[part.index, [c for c in shown if c not in keys]].stack()
        title = f"{kind.caption} (the paper)" + (f": {heading}" if heading else "")
        labels = len(shown.columns) if plain else sum(c in keys for c in shown)
        made.append(Table(name, title, shown, marks=found[found != ""].to_dict(), labels=labels))
    return made


def own_tables(
    name: str, runs: Any, metric: Metric = "test", *, average: Average | None = None
) -> list[Table]:
    """One table of the paper, with the rows and columns that your own runs fill.

    ``average`` is over seeds: by default the median in tables of results, as the paper has it, and
    the mean that its fits interpolate in tables of coefficients.
    """
    kind = spec(name)
    if metric not in ("val", "test"):
        raise unknown("metric", metric, ("val", "test"))
    if name in FITTED:
        how: Any = {"metric": metric, "average": average or "mean"}
        return [fitted(name, FITTED[name](runs, skip=True, **how), how)]
    if not kind.marked:
        raise TstarError(
            f"Runs can be set next to a table of results, got {name!r}; choose one of "
            f"{', '.join(_TITLES)}."
        )
    found = read(runs)
    every = found if isinstance(found, list | tuple) else conditions(found)
    scores = _scores(kind, every, metric)
    several, average = scores["block"].nunique() > 1, average or "median"
    return [
        Table(
            f"{name}-{place}" if several else name,
            _TITLES[name] + (f": {heading}" if heading else ""),
            note=_RESULTS.format(metric.capitalize(), average),
            **_measured(kind, block, every, average),
        )
        for place, (heading, block) in enumerate(_blocks(scores, "block"), 1)
    ]


def fitted(name: str, frame: pd.DataFrame, how: Mapping[str, Any]) -> Table:
    """A table of coefficients that :mod:`tstar.lab.fitting` made."""
    axis = "T" if how.get("interpolation") == "T" else "ln T"
    note = (
        f"Fitted to {how['metric']} accuracy, {how['average']} over seeds, linear in {axis} "
        "between temperatures."
    )
    if how["metric"] == "test":
        note += (
            " Test accuracy chose the coefficients, as in the paper: what they gain on the same "
            "runs is optimistic."
        )
    shown = frame.copy()
    if name == "environments":
        note += _ENVIRONMENTS.format(**frame.attrs)
        shown = _with_ranges(frame)
    note += "".join(f" Not possible: {reason}" for reason in frame.attrs.get("notes", ()))
    if "regret" in shown:
        shown["regret"] *= 100
    shown = shown.rename(columns=HEADINGS)
    keys = [HEADINGS.get(c, c) for c in spec(name).keys]
    digits = 4 if name == "coefficients" else 2
    decimals = {c: digits for c in shown.columns if c not in (*keys, "n")}
    return Table(name, _TITLES[name], shown, note, decimals, labels=len(keys))


def _with_ranges(frame: pd.DataFrame) -> pd.DataFrame:
    """The environments with the range of α and β beside the value, or "not identified"."""
    shown = frame.astype(object)
    for name in ("alpha", "beta", "alpha_bn", "beta_bn"):
        cells = []
        ends = (shown.pop(f"{name}_low"), shown.pop(f"{name}_high"))
        for value, low, high in zip(frame[name], *ends, strict=True):
            known = f"{value:.2f}" if value == value else None
            span = f"[{low + 0.0:.2f}, {high + 0.0:.2f}]"
            cells.append(f"{known or 'not identified'} {span}" if low == low else known)
        shown[name] = cells
    return shown


def _measured(
    kind: Spec, block: pd.DataFrame, every: Sequence[Condition], average: Average
) -> dict[str, Any]:
    """The frame of one block of a table, with its digits, marks and signs."""
    values: dict[str, pd.Series] = {}
    about: dict[str, dict[str, str]] = {}
    signs: dict[tuple[Any, str], str] = {}
    for column in sorted(block["column"].unique(), key=lambda c: _printed_order(kind, c)):
        part = block[block["column"] == column]
        kept = _matched(part)
        if kept.empty:
            continue
        each = kept.groupby(level="condition").agg(average)
        values[column] = 100 * each.mean().rename(ROWS)
        guessed = part[part["guessed"] & part["condition"].isin(each.index)]["method"]
        signs |= {(ROWS[row], column): "~" for row in guessed if row in kept.columns}
        about[column] = {"n": f"{len(each)} ({len(kept):,})"}
        for name, label in _ABOUT.items():
            facts = sorted({v for i in each.index if (v := every[i].facts.get(name)) is not None})
            if facts:
                ends = dict.fromkeys((text(facts[0]), text(facts[-1])))
                about[column][label] = "–".join(ends)
    frame = pd.DataFrame(values)
    frame = frame.reindex([row for row in ROWS.values() if row in frame.index])
    if kind.average and len(frame.columns) > 1:
        whole = frame.dropna(axis=1)  # what is not matched is not compared
        frame[HEADINGS["avg"]] = whole.mean(axis=1) if len(whole.columns) > 1 else math.nan
    best = {cell: mark for name in frame for cell, mark in marked(frame[name]).items()}
    notes = pd.DataFrame(about).reindex([*_ABOUT.values(), "n"]).dropna(how="all")
    shown = pd.concat([frame.astype(object), notes.astype(object)])
    digits = dict.fromkeys(frame.columns, 2)
    shown.insert(0, "method", shown.index)
    return {"frame": shown, "digits": digits, "marks": best, "signs": signs}


def _matched(part: pd.DataFrame) -> pd.DataFrame:
    """The runs of the methods that are compared: (condition, seed) × method, without gaps.

    Rows that fewest conditions have are given up one after another; of what is left each time, the
    choice with the most filled cells is taken. ``_CORE`` goes only if nothing could be compared.
    """
    table = part.pivot_table(index=["condition", "seed"], columns="method", values="accuracy")
    count = part.groupby("method")["condition"].nunique()
    methods = [name for name in ROWS if name in table.columns]
    best, cells = table.iloc[:0], 0
    while methods:
        kept = table[methods].dropna()
        filled = kept.index.get_level_values("condition").nunique() * len(methods)
        if filled > cells:
            best, cells = kept, filled
        spare = [name for name in methods if name not in _CORE]
        if cells and not spare:
            break
        methods.remove(min(reversed(spare or methods), key=lambda name: count[name]))
    return best


def _scores(kind: Spec, every: Sequence[Condition], metric: Metric) -> pd.DataFrame:
    """One row per condition, method and seed that belongs to the table, with its place in it."""
    rows = []
    for i, condition in enumerate(every):
        for smoothed, method, by_seed, guessed in _methods(condition, metric):
            place = _place(kind, condition.facts, smoothed)
            for seed, accuracy in by_seed.items() if place else ():
                rows.append((*place, i, method, seed, accuracy, guessed))  # type: ignore[misc]
    if not rows:
        raise TstarError(
            f"No run belongs to a row of the table {kind.name!r} (plain, √M, Insert LN, or BN at "
            f"T = 1 or T* of a variant) among {len(every)} conditions; a grid of fixed "
            "temperatures must surround T*."
        )
    columns = ["block", "column", "condition", "method", "seed", "accuracy", "guessed"]
    # A run by name goes before one that a grid stands for.
    return pd.DataFrame(rows, columns=columns).drop_duplicates(columns[:5])


def _methods(
    condition: Condition, metric: Metric
) -> Iterator[tuple[bool, str, Mapping[int, float], bool]]:
    """(with label smoothing, row, accuracy by seed, interpolated) for each row of a table."""
    facts = condition.facts
    smooth = bool(facts.get("label_smoothing"))
    for name, runs in condition.methods.items():
        base, _, rest = name.partition("+")
        if base in _NAMES:
            known = {s: run[metric] for s, run in runs.items() if not math.isnan(run[metric])}
            smoothed = smooth or "label-smoothing" in (base, rest)
            yield smoothed, _NAMES[base], known, False
    M = number(facts.get("num_features"))
    paper = {variant: of_paper(facts, variant=variant) for variant in VARIANTS}
    # The methods that a grid can stand for, each with its T.
    targets: dict[str, dict[str, float | None]] = {
        "none": {"T=1": 1.0, "T=sqrt(M)": math.sqrt(M) if M else None},
        "batch": {"BN, T=1": 1.0, **paper, "law": law(facts)},
    }
    for norm, temperatures in targets.items():
        curve = condition.curve(norm)
        for method, T in temperatures.items():
            if curve is None or T is None:
                continue
            grid = curve.temperatures.tolist()
            near = [t for t in grid if math.isclose(t, T, rel_tol=0.01)]
            if near:
                yield smooth, method, curve.by_seed(near[0], metric), False
            elif len(grid) >= 3 and grid[0] < T < grid[-1]:
                yield smooth, method, curve.at_by_seed(T, metric), True


def _place(kind: Spec, facts: Mapping[str, Any], smoothed: bool) -> tuple[str, str] | None:
    """Block and column of a condition: the data set's own name, and the model's."""
    if smoothed != (kind.name == "smoothing"):
        return None
    dataset, model = str(facts.get("dataset")), model_name(str(facts.get("model")))
    scratch = (facts.get("scenario") or "scratch") == "scratch"
    if kind.name not in ("models", "transformers"):
        return f"{model}, {'from scratch' if scratch else 'fine-tuned'}", dataset
    transformer = dataset_name(dataset) == "CT" and _TRANSFORMER.search(str(facts.get("model")))
    if not scratch or (kind.name == "transformers" and not transformer):
        return None
    return (dataset if kind.block else "", model)


def _printed_order(kind: Spec, column: str) -> tuple[int, str]:
    name = dataset_name(column.split()[0])  # the paper's order, if it has the data set
    return (kind.values.index(name) if name in kind.values else len(kind.values), column)


def _blocks(frame: pd.DataFrame, column: str | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """The parts of a table that have a heading of their own."""
    if column is None:
        yield "", frame
    else:
        yield from ((str(name), part) for name, part in frame.groupby(column, sort=False))
