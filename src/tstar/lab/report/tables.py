"""Tables of a report: what a table is, ours, and the paper's as printed and as runs fill them.

A table is a DataFrame with a style; pandas writes it, and whatever is in a name stays text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tstar.errors import TstarError, unknown
from tstar.formula import VARIANTS, published
from tstar.lab.cells import disarmed
from tstar.lab.curves import Condition, conditions, read
from tstar.lab.curves.lines import Interpolation
from tstar.lab.curves.reading import Metric
from tstar.lab.curves.resampling import Array, estimate, what_is_drawn
from tstar.lab.fitting import How, coefficient_table, correction_table, per_environment
from tstar.lab.paper.catalogue import (
    METHODS,
    SPECS,
    Printed,
    dataset_name,
    expected_marks,
    marks,
    model_name,
    printed,
    spec,
)
from tstar.lab.report.law import law, number, of_paper
from tstar.lab.report.records import Records, Sweep, text
from tstar.lab.sweep.spec import LABELS
from tstar.text import escaped, printable

# -- what a table is -----------------------------------------------------------------------------
_LATEX = {"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "Δ": "Delta", "±": "pm"}
_LATEX |= {"·": "cdot", "√": "surd", "×": "times"}
_SYMBOLS = str.maketrans({s: f"$\\{n}$" for s, n in _LATEX.items()} | {"–": "--", "−": "$-$"})
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in r"\`*_[]|"} | {"\n": " "})


@dataclass(frozen=True, eq=False)
class Table:
    """A table: a frame of numbers and texts, and how it looks."""

    name: str  # of its files
    title: str
    frame: pd.DataFrame
    note: str = ""  # how to read it
    # Decimals of a column's numbers; others are written as people do, "18,000".
    digits: Mapping[str, int] = field(default_factory=dict)
    # (row, column) → "best" or "second"; and "~" before or "*" after.
    marks: Mapping[tuple[Any, str], str] = field(default_factory=dict)
    signs: Mapping[tuple[Any, str], str] = field(default_factory=dict)
    labels: int = 1  # how many of the first columns are text

    def texts(self) -> pd.DataFrame:
        """Every cell as it is shown, without marks."""
        shown = self.frame.astype(object)
        for name in shown.columns:
            shown[name] = [_text(value, self.digits.get(name)) for value in shown[name]]
        for (row, name), sign in self.signs.items():
            cell = shown.loc[row, name]
            shown.loc[row, name] = f"{sign}{cell}" if sign == "~" else f"{cell}{sign}"
        return shown.rename(columns=printable)

    def latex(self) -> str:
        """A table of booktabs: bold best, underlined second."""
        shape = "l" * self.labels + "c" * (len(self.frame.columns) - self.labels)
        title = re.sub("([%_&])", r"\\\1", self.title)
        caption = {"caption": title, "label": f"table:{self.name}", "position_float": "centering"}
        texts = self.texts()
        looks = self._marked(texts.map(lambda cell: ""), "textbf:--rwrap;", "underline:--rwrap;")
        style = texts.style.hide(axis="index").apply(lambda _: looks, axis=None)
        style = style.format(escape="latex").format_index(escape="latex", axis=1)
        lines: str = style.to_latex(hrules=True, column_format=shape, **caption)
        return lines.translate(_SYMBOLS)

    def markdown(self) -> str:
        """GitHub's tables, with the note that says how to read them."""
        shown = self._marked(self.texts().map(_markdown), "**{}**", "<u>{}</u>")
        shown = shown.rename(columns=_markdown)
        table = shown.to_markdown(index=False, disable_numparse=True)
        table = re.sub(r" {2,}\|", " |", table)  # padding would change every line with one cell
        return "\n\n".join(filter(None, [f"**{_markdown(self.title)}**", table, self.note])) + "\n"

    def csv(self) -> str:
        """One line per row, numbers in full; no cell that a spreadsheet takes for a formula."""

        def safe(cell: Any) -> Any:
            return disarmed(printable(cell)) if isinstance(cell, str) else cell

        frame = self.frame.astype(object).map(safe).rename(columns=safe)
        return str(frame.to_csv(index=False, lineterminator="\n"))

    def text(self) -> str:
        """For a terminal: **best** and _second_."""
        shown = self._marked(self.texts(), "**{}**", "_{}_")
        sides = ["left"] * self.labels + ["right"] * (len(shown.columns) - self.labels)
        how = {"tablefmt": "simple", "disable_numparse": True, "colalign": sides}
        table = shown.to_markdown(index=False, **how)
        return "\n\n".join(filter(None, [printable(self.title), table, self.note]))

    def write(self, folder: Path) -> None:
        """The table as ``.md``, ``.tex`` and ``.csv``."""
        folder.mkdir(parents=True, exist_ok=True)
        for kind, content in (("md", self.markdown()), ("tex", self.latex()), ("csv", self.csv())):
            (folder / f"{self.name}.{kind}").write_text(content, encoding="utf-8")

    def _marked(self, cells: pd.DataFrame, best: str, second: str) -> pd.DataFrame:
        """Cells with their marks: a form that each is put into."""
        for (row, name), mark in self.marks.items():
            form = best if mark == "best" else second
            cells.loc[row, printable(name)] = form.format(cells.loc[row, printable(name)])
        return cells


def marked(values: pd.Series) -> dict[tuple[Any, str], str]:
    """Best and second best of a column, as printed with two decimals; one alone is not best."""
    rounded = [round(v, 2) if isinstance(v, float) else math.nan for v in values]
    if sum(not math.isnan(v) for v in rounded) < 2:
        return {}
    marks = zip(values.index, expected_marks(rounded), strict=True)
    return {(row, values.name): mark for row, mark in marks if mark}


def _text(value: Any, digits: int | None) -> str:
    if isinstance(value, str) or value is None or value != value or digits is None:
        return text(value) or "–"
    return f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: a rounded -0.004 has no sign


def _markdown(cell: object) -> str:
    return escaped(str(cell), quote=False).translate(_MARKDOWN)


# -- ours ------------------------------------------------------------------------------------------
def advice_table(records: Records) -> Table:
    """What BN at the T judged gained over each rival, the best T of the grid among them."""
    judged = records.judged()
    both = [s for s in judged if s.condition.plain_by_seed(s.metric).keys() & set(s.curve.seeds)]
    sweeps, here = both or judged, f"BN, {records.label}"
    rivals = [_rivals(sweep, here, plain=bool(both)) for sweep in sweeps]
    names = [str(sweep.facts.get("dataset")) for sweep in sweeps]
    lines: list[dict[str, Any]] = []
    for name in rivals[0]:
        if not all(name in found for found in rivals):
            continue  # not matched: not compared
        line: dict[str, Any] = {"": name}
        line["accuracy [%]"] = 100 * np.mean([found[name].mean() for found in rivals])
        if name != here:
            gains = [100 * (found[here] - found[name]) for found in rivals]
            gain = estimate(gains, names)
            line[f"gain of {records.label}"] = f"{gain.value:+.2f}"
            if len(sweeps) > 2:
                line["95 % interval"] = f"{gain.low:+.2f} to {gain.high:+.2f}"
            line["better in"] = sum(gain.mean() > 0 for gain in gains)
        lines.append(line)
    frame = pd.DataFrame(lines)
    where = "all with BN" if len(sweeps) == len(judged) else "those that ran plain too"
    outside = sum(sweep.outside(sweep.law or 1.0) for sweep in sweeps)
    return Table(
        "advice",
        f"What BN at {records.label} gained",
        frame,
        f"{records.metric.capitalize()} accuracy; gains in points. Every row is the mean over the "
        f"same {len(sweeps)} conditions ({where}), one vote each, and the same seeds; "
        "a diverged run counts as chance. A condition is everything but T, norm, method "
        f"and seed. The formula: {records.formula}. Best T: of the grid, by {records.chosen_on} "
        "accuracy. Between the temperatures of the grid accuracy is linear in ln T, and constant "
        f"outside it, where {records.label} lies in {outside} of them. Intervals: bootstrap over "
        f"{what_is_drawn(names)}.",
        {"accuracy [%]": 2, "better in": 0},
        marked(frame["accuracy [%]"][:-1]),  # the best T of the grid is no method
    )


def _rivals(sweep: Sweep, here: str, *, plain: bool) -> dict[str, Array]:
    """Accuracy of every rival, a number for each seed that all of them have."""
    curve, metric = sweep.curve.matched(), sweep.metric
    there = curve.index_of(1.0) is not None or not plain
    temperatures = {"BN, T = 1": 1.0 if there else None, here: sweep.law}
    for name, chosen in published().items():
        temperatures[f"BN, {METHODS[name]}"] = of_paper(sweep.facts, chosen)
    temperatures["BN, best T of the grid"] = curve.best
    found = {"plain": sweep.condition.plain_by_seed(metric)} if plain else {}
    found |= {name: curve.at_by_seed(T, metric) for name, T in temperatures.items() if T}
    common = sorted(set.intersection(*(set(by_seed) for by_seed in found.values())))
    if common:
        return {name: np.array([v[seed] for seed in common]) for name, v in found.items()}
    # No seed has the whole grid: averages are all there is.
    return {name: np.array([np.mean([*v.values()])]) for name, v in found.items()}


def conditions_table(records: Records) -> Table:
    """One row per condition and what was done: a grid of fixed temperatures, or a method by name."""
    judged = records.label
    rows = [_condition(sweep, records) for sweep in records.sweeps]
    for condition in records.conditions:
        for name, runs in condition.methods.items():
            values = np.array([run[records.metric] for run in runs.values()])
            rows.append(_row(condition.facts, name, values, records))
    if not rows:
        raise TstarError("No fixed temperature was run, and no method by name.")
    frame = pd.DataFrame(rows).dropna(axis=1, how="all")
    outside = frame.index[frame.pop("outside")]
    shares = ("accuracy [%]", f"at {judged} [%]", "at T = 1 [%]")
    return Table(
        "conditions",
        "Every condition, and what came out",
        frame,
        f"{records.metric.capitalize()} accuracy, mean over n seeds; of a grid at "
        f"its best T, which {records.chosen_on} accuracy chose: another one than is shown may give "
        f"a negative regret, the same flatters the best T. {judged[0].upper()}{judged[1:]} "
        "presupposes BN and is shown with it only (the law's if it was measured on such a "
        "training); accuracy there is interpolated in ln T, and * marks a T outside the grid, where "
        "it is taken as constant. Diverged runs count as chance.",
        {**dict.fromkeys((*shares, "± s.d.", judged, "regret"), 2), "csg": 3},
        signs={(row, judged): "*" for row in outside},
        labels=2,
    )


def _row(
    facts: Mapping[str, Any], done: str, values: Array, records: Records, **more: Any
) -> dict[str, Any]:
    """A row: the condition, what was done, the accuracy of its seeds, and what a grid has more."""
    return {
        "condition": records.title(facts),
        "done": done,
        **{LABELS[name]: facts.get(name) for name in ("num_features", "num_classes", "csg")},
        "accuracy [%]": 100 * float(values.mean()),
        "± s.d.": 100 * float(values.std(ddof=1)) if len(values) > 1 else None,
        "n": len(values),
        "outside": False,
        **more,
    }


def _condition(sweep: Sweep, records: Records) -> dict[str, Any]:
    """The row of a grid: its best T, the T judged, and T = 1."""
    label, bn = records.label, sweep.curve.norm == "batch"
    more: dict[str, Any] = {"best T": sweep.best, "diverged": sweep.curve.diverged}
    if bn and sweep.law is not None:
        there = sweep.curve.matched().at(sweep.law, sweep.metric)
        more |= {label: sweep.law, f"at {label} [%]": 100 * there}
        more["regret"] = sweep.curve.regret(sweep.law, sweep.metric)
        more["outside"] = sweep.outside(sweep.law)
    if sweep.curve.index_of(1.0) is not None:
        more["at T = 1 [%]"] = 100 * sweep.curve.at(1.0, sweep.metric)
    done, seen = "BN" if bn else "no BN", sweep.seen(sweep.best)
    return _row(sweep.facts, done, seen, records, **more)


# -- the paper's: within a column every row averages the same conditions and seeds, one condition one
# vote; a row that was run in too few of them is not compared, and has a dash ----------------------
FITTED = {
    "environments": per_environment,
    "corrections": correction_table,
    "coefficients": coefficient_table,
}
# The tables that runs can fill.
FILLED = tuple(name for name, kind in SPECS.items() if kind.marked or name in FITTED)
HEADINGS = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "accuracy": "acc."},
    **{"alpha_bn": "α, BN", "beta_bn": "β, BN", "accuracy_bn": "acc., BN", "avg": "Avg."},
    **{"dataset": "data set", "optimization": "fit", "regret": "regret [points]"},
    **{"conditions": "n", "gain": "Δ acc."},
}
# The rows of a table of own runs: the paper's, and the two that a user wants to know.
ROWS = {**METHODS, "BN, T=1": "BN, T = 1", "law": "BN, the law's T"}
_CORE = ["T=1", "BN, T=1", "law"]
_NAMES = {
    **{"default": "T=1", "label-smoothing": "T=1", "sqrt-m": "T=sqrt(M)"},
    **{"insert-ln": "Insert LN", **{f"ours-{name}": name for name in VARIANTS}},
}
_TRANSFORMER = re.compile(r"vit|swin|deit|beit|bert|former|minilm", re.IGNORECASE)
_RESULTS = (
    "{} accuracy, median over seeds. Every cell of a column is the mean over the same conditions, one "
    "vote each, and the same seeds, those of plain, BN at T = 1 and the law's T; n counts the "
    "conditions, and in brackets the runs of one cell. What was not run in all of them is not "
    "compared and has a dash. Best in bold, second best underlined. ~ marks a value interpolated "
    "in ln T between the temperatures of a grid."
)
_ENVIRONMENTS = (
    " If a data set was run without BN and with it, both sides are fitted to the n conditions and "
    "the seeds that they share. In brackets: all values that the noise of the seeds cannot tell "
    "from the fit; of one seed the noise is not known. If they (or, with one seed, those that cost "
    "less than 0.1 points) reach the bound of the search, α and β are not identified (*): any pair "
    "on that line is as good, and the one with the smallest α is shown. Avg. and S.D. are over "
    "{averaged} environments (those of both sides, if any); of these {identified} are identified."
)


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
    name: str, runs: Any, metric: Metric = "test", *, interpolation: Interpolation = "lnT"
) -> list[Table]:
    """One table of the paper, with the rows and columns that your own runs fill.

    As in the paper tables of results have medians over seeds, and tables of coefficients
    interpolate means; these may do so in ``"T"``.
    """
    kind = spec(name)
    if metric not in ("val", "test"):
        raise unknown("metric", metric, ("val", "test"))
    if name not in FILLED:
        raise TstarError(f"Runs cannot fill {name!r}; choose one of {', '.join(FILLED)}.")
    if name in FITTED:
        how = How(metric, interpolation=interpolation)
        return [fitted(name, FITTED[name](runs, **asdict(how)), how)]
    if interpolation != "lnT":
        raise TstarError(
            f"Only tables of coefficients interpolate in T, got {name!r}; choose one of "
            f"{', '.join(FITTED)}."
        )
    found = read(runs)
    every = found if isinstance(found, list | tuple) else conditions(found)
    scores = _scores(kind, every, metric)
    several = scores["block"].nunique() > 1
    return [
        _measured(
            kind,
            block,
            name=f"{name}-{place}" if several else name,
            title=kind.caption + (f": {heading}" if heading else ""),
            note=_RESULTS.format(metric.capitalize()),
        )
        for place, (heading, block) in enumerate(_blocks(scores, "block"), 1)
    ]


def fitted(name: str, frame: pd.DataFrame, how: How) -> Table:
    """A table of coefficients that :mod:`tstar.lab.fitting` made."""
    note = f"Fitted to {how} between temperatures."
    if how.metric == "test":
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
    return Table(name, spec(name).caption, shown, note, decimals, labels=len(keys))


def _with_ranges(frame: pd.DataFrame) -> pd.DataFrame:
    """The environments with the range of α and β beside the value, and * if not identified."""
    shown = frame.astype(object)
    for side in ("", "_bn"):
        marks = ["*" * (known is False) for known in shown.pop(f"identified{side}")]
        for name in (f"alpha{side}", f"beta{side}"):
            ends = (shown.pop(f"{name}_low"), shown.pop(f"{name}_high"))
            cells = []
            for value, mark, low, high in zip(frame[name], marks, *ends, strict=True):
                span = f" [{_text(low, 2)}, {_text(high, 2)}]" if low == low else ""
                cells.append(f"{_text(value, 2)}{mark}{span}" if value == value else None)
            shown[name] = cells
    return shown


def _measured(kind: Printed, block: pd.DataFrame, **words: Any) -> Table:
    """One block of a table, with its marks and signs; its last row counts conditions and runs."""
    values: dict[str, pd.Series] = {}
    counts: dict[str, str] = {}
    signs: dict[tuple[Any, str], str] = {}
    for column in sorted(block["column"].unique(), key=lambda c: _printed_order(kind, c)):
        part = block[block["column"] == column]
        whole = _matched(part)
        each = whole.groupby(level="condition").median()
        values[column] = 100 * each.mean().rename(ROWS)
        counts[column] = f"{len(each)} ({len(whole):,})"
        guessed = part[part["guessed"] & part["condition"].isin(each.index)]["method"]
        signs |= {(ROWS[row], column): "~" for row in guessed if row in whole.columns}
    frame = pd.DataFrame(values)
    frame = frame.reindex([row for row in ROWS.values() if row in frame.index])
    if kind.average and len(frame.columns) > 1:
        matched = frame.dropna(axis=1)  # what is not matched is not compared
        frame[HEADINGS["avg"]] = matched.mean(axis=1) if len(matched.columns) > 1 else math.nan
    marks = {cell: mark for name in frame for cell, mark in marked(frame[name]).items()}
    digits = dict.fromkeys(frame.columns, 2)
    shown = pd.concat([frame.astype(object), pd.DataFrame(counts, index=["n"])])
    shown.insert(0, "method", shown.index)
    return Table(frame=shown, digits=digits, marks=marks, signs=signs, **words)


def _matched(part: pd.DataFrame) -> pd.DataFrame:
    """The runs of the methods that are compared: (condition, seed) × method, without gaps.

    They are the runs that all of ``_CORE`` have, or, if there are none, those of the method with
    the most; a method that lacks one of them is left out.
    """
    table = part.pivot_table(index=["condition", "seed"], columns="method", values="accuracy")
    whole = table.dropna(subset=[name for name in _CORE if name in table])
    if whole.empty:
        whole = table.dropna(subset=[table.count().idxmax()])
    return whole.dropna(axis=1)


def _scores(kind: Printed, every: Sequence[Condition], metric: Metric) -> pd.DataFrame:
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
    paper = {name: of_paper(facts, chosen) for name, chosen in published().items()}
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
            grid, guessed = curve.temperatures, curve.index_of(T) is None
            if not guessed or (len(grid) >= 3 and grid[0] < T < grid[-1]):
                yield smooth, method, curve.at_by_seed(T, metric), guessed


def _place(kind: Printed, facts: Mapping[str, Any], smoothed: bool) -> tuple[str, str] | None:
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


def _printed_order(kind: Printed, column: str) -> tuple[int, str]:
    name = dataset_name(column.split()[0])  # the paper's order, if it has the data set
    return (kind.values.index(name) if name in kind.values else len(kind.values), column)


def _blocks(frame: pd.DataFrame, column: str | None) -> list[tuple[str, pd.DataFrame]]:
    """The parts of a table that have a heading of their own."""
    parts = [("", frame)] if column is None else frame.groupby(column, sort=False)
    return [(str(name), part) for name, part in parts]
