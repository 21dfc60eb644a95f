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
from tstar.formula import VARIANTS
from tstar.lab.cells import disarmed
from tstar.lab.curves import FACTS, Condition, conditions, read
from tstar.lab.curves.conditions import Average, averaged
from tstar.lab.curves.lines import Interpolation
from tstar.lab.curves.reading import Metric
from tstar.lab.curves.resampling import Array, estimate, what_is_drawn
from tstar.lab.fitting import How, coefficient_table, correction_table, per_environment
from tstar.lab.paper.catalogue import METHODS, Printed, dataset_name, expected_marks, spec
from tstar.lab.paper.loading import marks, model_name, printed
from tstar.lab.report.headline import places
from tstar.lab.report.law import law, number, of_paper
from tstar.lab.report.records import ACCURACIES, Records, Sweep, paper_name, people, say, text
from tstar.lab.sweep.columns import FINAL, json_object
from tstar.text import escaped, printable

# -- what a table is -----------------------------------------------------------------------------
_DASH = "–"
_SYMBOLS = {
    **{"α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "Δ": r"\Delta"},
    **{"±": r"\pm", "·": r"\cdot", "√": r"\surd", "×": r"\times", "−": "-"},
}
_LATEX = str.maketrans({sign: f"${code}$" for sign, code in _SYMBOLS.items()} | {_DASH: "--"})
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in r"\`*_[]|"} | {"\n": " "})


@dataclass(frozen=True, eq=False)
class Table:
    """A table.

    Attributes:
        name: the name of its files. title: the line above it. note: how to read it.
        frame: numbers and texts, one column per column.
        digits: decimals of a column's numbers; others are written as people do, "18,000".
        marks: (row, column) → "best" or "second".
        signs: (row, column) → "~" before or "*" after.
        labels: how many of the first columns are text.
    """

    name: str
    title: str
    frame: pd.DataFrame
    note: str = ""
    digits: Mapping[str, int] = field(default_factory=dict)
    marks: Mapping[tuple[Any, str], str] = field(default_factory=dict)
    signs: Mapping[tuple[Any, str], str] = field(default_factory=dict)
    labels: int = 1

    def texts(self) -> pd.DataFrame:
        """Every cell as it is shown, without marks."""
        shown = self.frame.astype(object)
        for name in shown.columns:
            shown[name] = [_text(value, self.digits.get(name)) for value in shown[name]]
        for (row, name), sign in self.signs.items():
            text = shown.loc[row, name]
            shown.loc[row, name] = f"{sign}{text}" if sign == "~" else f"{text}{sign}"
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
        return lines.translate(_LATEX)

    def cells(self) -> list[list[tuple[str, str]]]:
        """Every cell as it is shown, with its mark, row by row: for a page."""
        texts = self.texts()
        marks = self._marked(texts.map(lambda cell: ""), "best", "second")
        pairs = zip(texts.to_numpy().tolist(), marks.to_numpy().tolist(), strict=True)
        return [[*zip(*pair, strict=True)] for pair in pairs]

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
        made: str = frame.to_csv(index=False, lineterminator="\n")
        return made

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
    if value is None or value != value:
        return _DASH
    if isinstance(value, str):
        return printable(value)
    if digits is None:
        return people(float(value))
    return f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: a rounded -0.004 has no sign


def _markdown(text: object) -> str:
    return escaped(str(text), quote=False).translate(_MARKDOWN)


# -- ours ------------------------------------------------------------------------------------------
_BEST = "BN, best T of the grid"


def advice_table(records: Records) -> Table:
    """The T judged beside the baselines, the paper's variants and the best T, on equal terms."""
    judged = records.judged()
    both = [s for s in judged if s.condition.plain_by_seed(s.metric).keys() & set(s.curve.seeds)]
    sweeps = both or judged
    rivals = [_rivals(sweep, records.label, plain=bool(both)) for sweep in sweeps]
    over = "plain" if both else "BN, T = 1"
    names, average = places(sweeps), records.averaging
    lines: list[dict[str, Any]] = []
    for name in rivals[0]:
        if not all(name in found for found in rivals):
            continue  # not matched: not compared
        gains = [100 * (found[name] - found[over]) for found in rivals]
        line: dict[str, Any] = {"": name}
        line["accuracy [%]"] = 100 * np.mean([averaged(found[name], average) for found in rivals])
        if name != over:
            gain = estimate(gains, names, average=average)
            line[f"over {over}"] = f"{gain.value:+.2f}"
            if len(sweeps) > 2:
                line["95 % interval"] = f"{gain.low:+.2f} to {gain.high:+.2f}"
            line["better in"] = sum(gain.mean() > 0 for gain in gains)
        if name != _BEST:
            left = [100 * averaged(found[_BEST] - found[name], average) for found in rivals]
            line["below best T"] = float(np.mean(left))
        lines.append(line | {"search": "a grid of runs" if name == _BEST else "none"})
    frame = pd.DataFrame(lines)
    where = "all with BN" if len(sweeps) == len(judged) else "those that ran plain too"
    return Table(
        "advice",
        f"{records.label[0].upper()}{records.label[1:]} beside its rivals",
        frame,
        f"{records.metric.capitalize()} accuracy; differences in points. Every row is the mean "
        f"over the same {len(sweeps)} conditions ({where}), one vote each, and the same seeds "
        f"({average}). The formula: {records.formula}. Best T: of the grid, by "
        f"{ACCURACIES[records.chosen_on]} accuracy. Between the temperatures of the grid accuracy is "
        "linear in ln T, and constant outside it. Intervals: bootstrap over "
        f"{what_is_drawn(names)}.",
        {"accuracy [%]": 2, "below best T": 2, "better in": 0},
        marked(frame[frame[""] != _BEST]["accuracy [%]"]),
    )


def _rivals(sweep: Sweep, judged: str, *, plain: bool) -> dict[str, Array]:
    """Accuracy of every rival, a number for each seed that all of them have."""
    curve, metric = sweep.curve.matched(), sweep.metric
    assert sweep.law is not None
    found: dict[str, dict[int, float]] = {}
    if plain:
        found["plain"] = sweep.condition.plain_by_seed(metric)
    if curve.index_of(1.0) is not None or not plain:
        found["BN, T = 1"] = curve.at_by_seed(1.0, metric)
    found[f"BN, {judged}"] = curve.at_by_seed(sweep.law, metric)
    for variant in VARIANTS:
        T = of_paper(sweep.facts, variant=variant)
        if T is not None:
            found[f"BN, the paper's {paper_name(variant)}"] = curve.at_by_seed(T, metric)
    found[_BEST] = curve.at_by_seed(curve.best, metric)
    common = sorted(set.intersection(*(set(by_seed) for by_seed in found.values())))
    if common:
        return {name: np.array([v[seed] for seed in common]) for name, v in found.items()}
    # No seed has the whole grid: averages are all there is.
    means = {name: averaged(np.array([*v.values()]), curve.average) for name, v in found.items()}
    return {name: np.array([mean]) for name, mean in means.items()}


def conditions_table(records: Records) -> Table:
    """One row per condition of the grids."""
    if not records.sweeps:
        raise TstarError("No grid of fixed temperatures was run.")
    judged = records.label
    frame = pd.DataFrame([_condition(sweep, judged) for sweep in records.sweeps])
    outside = frame.index[frame.pop("outside")]
    shares = ("best accuracy [%]", f"at {judged} [%]", "at T = 1 [%]")
    return Table(
        "conditions",
        f"Every condition: the best T and {judged}",
        frame,
        f"{records.metric.capitalize()} accuracy, {records.averaging} over seeds. The best T of "
        f"the grid was chosen by {ACCURACIES[records.chosen_on]} accuracy: another one than is shown "
        f"may give a negative regret, the same flatters the best T. {judged[0].upper()}{judged[1:]} "
        "presupposes BN and is shown with it only (the law's if it was measured on such a training); "
        "accuracy there is interpolated in ln T, and * marks a T outside the grid, where it is taken "
        "as constant. Diverged runs count as chance.",
        {**dict.fromkeys((*shares, "± s.d.", judged, "regret"), 2), "csg": 3},
        signs={(row, judged): "*" for row in outside},
        labels=4,
    )


def _condition(sweep: Sweep, label: str) -> dict[str, Any]:
    facts, best = sweep.facts, sweep.ranking[0]
    bn = facts.get("norm", "batch") == "batch"
    judged = sweep.judged(sweep.law) if bn and sweep.law is not None else None
    seeds, at_one = sweep.seen(best), sweep.curve.index_of(1.0)
    return {
        "data set": text(facts.get("dataset")),
        "model": text(facts.get("model")),
        "setting": sweep.setting,
        "BN": "yes" if bn else "no",
        **{k: facts.get(n) for k, n in (("M", "num_features"), ("K", "num_classes"))},
        "csg": facts.get("csg"),
        "runs": sweep.curve.runs,
        "diverged": sweep.curve.diverged,
        "best T": best,
        "best accuracy [%]": 100 * sweep.curve.at(best, sweep.metric),
        "± s.d.": 100 * float(seeds.std(ddof=1)) if len(seeds) > 1 else None,
        label: judged and judged.temperature,
        f"at {label} [%]": judged and 100 * judged.accuracy,
        "regret": judged and judged.regret,
        "at T = 1 [%]": None if at_one is None else 100 * sweep.curve.at(1.0, sweep.metric),
        "outside": judged is not None and judged.extrapolated,
    }


def methods_table(records: Records) -> Table:
    """One row per method and condition; ranked within a condition."""
    frame = records.frame
    others = frame[frame["method"].fillna("fixed") != "fixed"] if "method" in frame else frame[:0]
    if others.empty:
        raise TstarError("No method was run beside fixed temperatures.")
    # A run that failed or diverged early has no length of its own.
    names = [n for n in FACTS if n in others and n not in ("epochs", "steps", "samples")]
    several = [n for n in names if n != "dataset" and others[n].nunique(dropna=False) > 1]
    told = dict.fromkeys(["dataset", "model", "num_features", *several])
    rows: list[dict[str, Any]] = []
    marks: dict[tuple[Any, str], str] = {}
    for key, part in others.groupby(names, dropna=False, sort=True):
        facts = dict(zip(names, key, strict=True))
        where = " · ".join(filter(None, (say(name, facts.get(name)) for name in told)))
        found = [_method(str(name), own, records) for name, own in part.groupby("method")]
        # Ranked are methods with the same seeds, all finished: leaving failures out would flatter.
        seeds = [one.pop("seeds") for one in found]
        most = max(seeds, key=lambda s: (seeds.count(s), len(s)))
        fair = {
            len(rows) + i: one["accuracy [%]"]
            for i, one in enumerate(found)
            if not one["failed"] and seeds[i] == most
        }
        marks |= marked(pd.Series(fair, name="accuracy [%]"))
        rows += [{"condition": where, **one} for one in found]
    return Table(
        "methods",
        "Methods that were run by name",
        pd.DataFrame(rows).dropna(axis=1, how="all"),
        f"{records.metric.capitalize()} accuracy, {records.averaging} over n seeds; diverged runs "
        "count as chance. Best in bold, second best underlined within a condition; a method with "
        "failed runs or with other seeds is not ranked.",
        {"accuracy [%]": 2, "± s.d.": 2, "NLL": 3, "ECE": 3},
        marks,
        labels=2,
    )


def _method(name: str, runs: pd.DataFrame, records: Records) -> dict[str, Any]:
    status = runs.get("status", pd.Series("done", runs.index))
    # Accuracy [%] of the runs that ended; chance if one diverged.
    share = runs.get(f"{records.metric}_accuracy", pd.Series(np.nan, runs.index))
    if "num_classes" in runs:
        share = share.where(status != "diverged", 1 / runs["num_classes"].max())
    known = 100 * share[status.isin(FINAL)].dropna().to_numpy(float)
    T, nll, ece = runs.reindex(columns=["temperature", "nll", "ece"]).astype(float).mean()
    left = [json_object(extra).get("left") for extra in runs.get("extra", ())]
    return {
        "method": f"{name}: left as it is" if left and all(left) else name,
        "accuracy [%]": float(averaged(known, records.averaging)) if len(known) else None,
        "± s.d.": float(np.std(known, ddof=1)) if len(known) > 1 else None,
        "failed": int((status == "failed").sum()),
        "n": len(known),
        **{"T": T, "NLL": nll, "ECE": ece},
        "seeds": frozenset(runs.get("seed", ())),
    }


def data_table(records: Records) -> Table:
    """One row per data set."""
    columns = {"domain": "domain", "num_classes": "classes K", "csg": "csg"}
    columns |= {"samples": "training samples"}
    there = {name: label for name, label in columns.items() if name in records.frame}
    sets = records.frame.groupby("dataset")
    made = sets[[*there]].first().rename(columns=there).assign(runs=sets.size())
    made = made.reset_index().rename(columns={"dataset": "data set"})
    note = "csg is the cumulative spectral gradient: higher is harder."
    return Table("data", "Data sets", made, note, {"csg": 3}, labels=1 + ("domain" in there))


# -- the paper's: within a column every row averages the same conditions and seeds, one condition one
# vote; a row that was run in too few of them is not compared, and has a dash ----------------------
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
    **{name: f"BN, the paper's {paper_name(name)}" for name in VARIANTS},
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
    "from the fit. If they reach the bound of the search, α and β are not identified (*): any pair "
    "on that line is as good, and the one with the smallest α is shown. Avg. and S.D. are over the "
    "{averaged} environments of both sides; of these {identified} are identified."
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
    name: str,
    runs: Any,
    metric: Metric = "test",
    *,
    average: Average | None = None,
    interpolation: Interpolation = "lnT",
) -> list[Table]:
    """One table of the paper, with the rows and columns that your own runs fill.

    ``average`` is over seeds: by default the median in tables of results, as the paper has it, and
    the mean that its fits interpolate in tables of coefficients. These may interpolate in ``"T"``.
    """
    kind = spec(name)
    if metric not in ("val", "test"):
        raise unknown("metric", metric, ("val", "test"))
    if name in FITTED:
        how = How(metric, average or "mean", interpolation, skip=True)
        return [fitted(name, FITTED[name](runs, **asdict(how)), how)]
    if interpolation != "lnT":
        raise TstarError(
            f"Only tables of coefficients interpolate in T, got {name!r}; choose one of "
            f"{', '.join(FITTED)}."
        )
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
    return Table(name, _TITLES[name], shown, note, decimals, labels=len(keys))


def _with_ranges(frame: pd.DataFrame) -> pd.DataFrame:
    """The environments with the range of α and β beside the value, and * if not identified."""
    shown = frame.astype(object)
    for side in ("", "_bn"):
        marks = ["*" * (known is False) for known in shown.pop(f"identified{side}")]
        for name in (f"alpha{side}", f"beta{side}"):
            ends = (shown.pop(f"{name}_low"), shown.pop(f"{name}_high"))
            cells = []
            for value, mark, low, high in zip(frame[name], marks, *ends, strict=True):
                span = f" [{low + 0.0:.2f}, {high + 0.0:.2f}]" if low == low else ""
                cells.append(f"{value + 0.0:.2f}{mark}{span}" if value == value else None)
            shown[name] = cells
    return shown


def _measured(
    kind: Printed, block: pd.DataFrame, every: Sequence[Condition], average: Average
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


def _blocks(frame: pd.DataFrame, column: str | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """The parts of a table that have a heading of their own."""
    if column is None:
        yield "", frame
    else:
        yield from ((str(name), part) for name, part in frame.groupby(column, sort=False))
