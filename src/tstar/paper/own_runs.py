"""A user's own runs in the layout of the paper's tables: like is compared with like.

Within a column every row averages the same conditions and the same seeds, one condition one vote. A row that was
run in too few of them is not compared, and has a dash.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from tstar.curves import Condition, conditions, read
from tstar.curves.reading import Metric
from tstar.errors import TstarError, require, unknown
from tstar.evidence.regret import advised
from tstar.fitting.comparison import coefficient_table, correction_table
from tstar.fitting.environments import per_environment
from tstar.formula.coefficients import VARIANTS
from tstar.formula.equation import temperature
from tstar.paper.catalogue import Spec, expected_marks, spec
from tstar.paper.loading import table

if TYPE_CHECKING:
    import pandas as pd

# The rows of a table of own runs: the paper's, and the two that a user wants to know.
ROWS = {
    "T=1": "plain",
    "T=sqrt(M)": "T = √M",
    "Insert LN": "Insert LN",
    "BN, T=1": "BN, T = 1",
    "base": "BN, Hasegawa & Sakai T*",
    **{name: f"BN, Hasegawa & Sakai T*_{name}" for name in ("csg", "cn", "csgcn")},
    "advised": "BN, the law's T",
}
_RESTARTS = 2  # of every fit in a table; ``tstar fit`` has five
_CORE = ("T=1", "BN, T=1", "advised")
_DATASETS = {
    "cifar10": "CIFAR10",
    "cifar100": "CIFAR100",
    "tinyimagenet": "TinyIN",
    "tinyin": "TinyIN",
    "gtsrb": "GTS",
    "gts": "GTS",
    "eurosat": "SAT",
    "isic": "ISIC",
    "isic2019": "ISIC",
    "caltech101": "CT",
    "flowers": "FLW",
    "flowers102": "FLW",
    "pets": "PET",
    "pet": "PET",
    "oxfordpets": "PET",
    "oxfordiiitpet": "PET",
    "dtd": "DTD",
    "cub": "CUB",
    "cub200": "CUB",
    "cub2002011": "CUB",
}
_NAMES = {
    "default": "T=1",
    "label-smoothing": "T=1",
    "sqrt-m": "T=sqrt(M)",
    "insert-ln": "Insert LN",
    **{f"ours-{name}": name for name in VARIANTS},
}
# What differs from the paper's own training of the same name, with how it is said.
_DIFFERS = {"size": "{} px", "num_train": "{} samples", "epochs": "{} epochs", "steps": "{} steps"}
_TASK = {"csg": "csg", "num_classes": "classes"}
_TRANSFORMER = re.compile(r"vit|swin|deit|beit|bert|former|minilm", re.IGNORECASE)


@dataclass(frozen=True)
class Score:
    """A method in one condition: accuracy by seed, and whether it is interpolated."""

    by_seed: Mapping[int, float]
    interpolated: bool = False


@dataclass
class Group:
    """A column within a block: every method of every condition that belongs there."""

    facts: list[Mapping[str, Any]] = field(default_factory=list)
    scores: list[dict[str, Score]] = field(default_factory=list)

    def matched(self) -> tuple[list[str], list[tuple[dict[str, Score], list[int]]]]:
        """The methods that are compared, and the conditions with the seeds that have all of them.

        Rows that fewest conditions have are given up one after another; of what is left each time, the choice
        with the most filled cells is taken. :data:`_CORE` is given up only where nothing could be compared with it.
        """
        methods = [name for name in ROWS if any(name in scores for scores in self.scores)]
        count = {name: sum(name in scores for scores in self.scores) for name in methods}
        best: tuple[list[str], list[tuple[dict[str, Score], list[int]]]] = ([], [])
        while methods:
            kept = [(s, seeds) for s in self.scores if (seeds := _common(s, methods))]
            if len(kept) * len(methods) > len(best[1]) * len(best[0]):
                best = (list(methods), kept)
            spare = [name for name in methods if name not in _CORE]
            if best[1] and not spare:
                break
            methods.remove(min(reversed(spare or methods), key=lambda name: count[name]))
        return best


def yours(
    name: str,
    runs: pd.DataFrame | str | os.PathLike[str] | Sequence[Condition],
    *,
    metric: Metric = "test",
) -> pd.DataFrame:
    """The table ``name`` as the given runs fill it, accuracies in %.

    Rows are :data:`ROWS`. A grid of fixed temperatures stands for plain and √M (without norm) and for the rows
    with BN: at the run within 1 % of the method's T, else linear in ln T between its neighbors, and then listed in
    ``attrs["interpolated"]`` as (row, column). ``attrs["n"]`` has (conditions, runs) of each column and block,
    ``attrs["about"]`` what its training differs in from the paper's, ``attrs["tasks"]`` csg and classes of each column.
    The tables of coefficients are fitted to the runs; conditions that cannot be used are left out, and named in a note.
    """
    kind = spec(name)
    if name == "environments":
        return per_environment(runs, metric=metric, restarts=_RESTARTS, skip=True)
    if name == "corrections":
        return correction_table(runs, metric=metric, restarts=_RESTARTS, skip=True)
    if name == "coefficients":
        return coefficient_table(runs, metric=metric, restarts=_RESTARTS, skip=True)
    if not kind.marked:
        raise TstarError(
            f"Runs can be set next to a table of results, got {name!r}; choose environments, corrections, "
            "coefficients, models, transformers, datasets or smoothing."
        )
    if metric not in ("val", "test"):
        raise unknown("metric", metric, ("val", "test"))
    found = read(runs)
    return _measured(kind, found if isinstance(found, list | tuple) else conditions(found), metric)


def mark(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Best and second best of each column within each block, as the paper marks them."""
    kind = spec(name)
    marks = frame.astype(object).copy()
    columns = [column for column in frame.columns if column not in kind.keys]
    groups = [frame] if kind.block is None else [part for _, part in frame.groupby(kind.block)]
    for column in columns:
        marks[column] = ""
        for part in groups:
            values = [round(float(value), 2) for value in part[column]]
            if sum(not math.isnan(value) for value in values) > 1:  # one alone is not the best
                marks.loc[part.index, column] = expected_marks(values)
    return marks


def _measured(kind: Spec, found: Sequence[Condition], metric: Metric) -> pd.DataFrame:
    pd = require("pandas", "fit")
    groups: dict[tuple[str, str], Group] = {}
    several = _several_sizes(found)
    for condition in found:
        for smoothed, scores in _scores(condition, metric):
            place = _place(kind, condition.facts, smoothed, several)
            if place is not None and scores:
                group = groups.setdefault(place, Group())
                group.facts.append(condition.facts)
                group.scores.append(scores)
    if not groups:
        raise TstarError(
            f"No run belongs to a row of the table {kind.name!r} (plain, √M, Insert LN, or BN at T = 1 or T* of a "
            f"variant) among {len(found)} conditions; a grid of fixed temperatures must surround T*."
        )
    blocks = list(dict.fromkeys(block for block, _ in groups))
    columns = sorted({column for _, column in groups}, key=lambda c: _printed_order(kind, c))
    keys = [(block, method) for block in blocks for method in ROWS]
    frame = pd.DataFrame(
        [{**({kind.block: block} if kind.block else {}), "method": name} for block, name in keys]
    )
    frame[columns] = math.nan
    interpolated, n, about = set(), {}, {}
    tasks: dict[str, list[Mapping[str, Any]]] = {}
    for (block, column), group in groups.items():
        methods, kept = group.matched()
        facts = [f for f, s in zip(group.facts, group.scores, strict=True) if _common(s, methods)]
        n[block, column] = (len(kept), sum(len(seeds) for _, seeds in kept))
        about[block, column] = _differs(facts)
        if kind.block == "scenario":  # columns are data sets
            tasks.setdefault(column, []).extend(facts)
        for row, (own, method) in enumerate(keys):
            if own != block or method not in methods:
                continue
            means = [sum(s[method].by_seed[i] for i in seeds) / len(seeds) for s, seeds in kept]
            frame.loc[row, column] = 100 * math.fsum(means) / len(means)
            if any(s[method].interpolated for s, _ in kept):
                interpolated.add((row, column))
    # A table that is mostly dashes says little: rows that no column fills go.
    filled = frame[columns].notna().any(axis=1)
    number = {old: new for new, old in enumerate(frame.index[filled])}
    frame = frame[filled].reset_index(drop=True)
    if kind.average and len(columns) > 1:
        frame[kind.average] = math.nan
        for _, part in frame.groupby(kind.block) if kind.block else [("", frame)]:
            # Over the columns that every row of the block has: what is not matched is not compared.
            whole = [column for column in columns if part[column].notna().all()]
            if len(whole) > 1:
                frame.loc[part.index, kind.average] = part[whole].mean(axis=1)
    frame.attrs |= {
        "interpolated": {(number[row], column) for row, column in interpolated},
        "n": n,
        "about": about,
        "tasks": {column: _differs(facts, _TASK) for column, facts in tasks.items()},
    }
    return frame


def _common(scores: Mapping[str, Score], methods: Sequence[str]) -> list[int]:
    """The seeds that every method has."""
    if not methods or not all(name in scores for name in methods):
        return []
    return sorted(set.intersection(*(set(scores[name].by_seed) for name in methods)))


def _scores(condition: Condition, metric: Metric) -> Iterator[tuple[bool, dict[str, Score]]]:
    """Every method of a condition that is a row: with label smoothing (true) and without."""
    smooth = bool(condition.facts.get("label_smoothing"))
    found: dict[bool, dict[str, Score]] = {smooth: {}, True: {}}
    for name, runs in condition.methods.items():
        base, _, rest = name.partition("+")
        if base in _NAMES:
            smoothed = smooth or "label-smoothing" in (base, rest)
            by_seed = {
                seed: run[metric] for seed, run in runs.items() if not math.isnan(run[metric])
            }
            found[smoothed][_NAMES[base]] = Score(by_seed)
    for norm in ("none", "batch"):
        curve = condition.curve(norm)
        for method, T in _targets(norm, condition.facts) if curve is not None else ():
            assert curve is not None
            near = [t for t in curve.temperatures.tolist() if math.isclose(t, T, rel_tol=0.01)]
            inside = curve.temperatures[0] < T < curve.temperatures[-1]
            if near:
                found[smooth].setdefault(method, Score(curve.by_seed(near[0], metric)))
            elif len(curve.temperatures) >= 3 and inside:
                found[smooth].setdefault(method, Score(curve.at_by_seed(T, metric), True))
    yield from found.items()


def _targets(norm: str, facts: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The methods that a grid with this norm can stand for, each with its T."""
    features, classes, csg = (facts.get(name) for name in ("num_features", "num_classes", "csg"))
    if norm == "none":
        yield "T=1", 1.0
        if features:
            yield "T=sqrt(M)", math.sqrt(features)
        return
    yield "BN, T=1", 1.0
    for variant in VARIANTS:
        if features and (classes or "cn" not in variant) and (csg or not variant.startswith("csg")):
            whole = int(classes) if classes else None
            yield variant, temperature(int(features), whole, csg or None, variant=variant)
    T = advised(facts)
    if T is not None:
        yield "advised", T


def _place(
    kind: Spec, facts: Mapping[str, Any], smoothed: bool, several: Mapping[str, Sequence[str]]
) -> tuple[str, str] | None:
    """Block and column of a condition: the data set's own name, and what tells two of one name apart."""
    if smoothed != (kind.name == "smoothing"):
        return None
    dataset, model = str(facts.get("dataset")), model_name(str(facts.get("model")))
    apart = [
        _DIFFERS[n].format(_number(facts.get(n))) for n in several.get(dataset, ()) if facts.get(n)
    ]
    data = " ".join([dataset, *apart])
    scenario = str(facts.get("scenario") or "scratch")
    if kind.name in ("models", "transformers"):
        if scenario != "scratch":
            return None
        if kind.name == "transformers" and not (
            dataset_name(dataset) == "CT" and _TRANSFORMER.search(str(facts.get("model")))
        ):
            return None
        return (data if kind.block else "", model)
    return f"{model}, {'from scratch' if scenario == 'scratch' else 'fine-tuned'}", data


def _several_sizes(found: Sequence[Condition]) -> dict[str, tuple[str, ...]]:
    """For each data set, the facts of the data that take several values, which then get columns of their own."""
    seen: dict[str, dict[str, set[Any]]] = {}
    for condition in found:
        here = seen.setdefault(str(condition.facts.get("dataset")), {})
        for name in ("size", "num_train"):
            here.setdefault(name, set()).add(condition.facts.get(name))
    return {
        data: tuple(name for name, values in facts.items() if len(values) > 1)
        for data, facts in seen.items()
    }


def _differs(
    facts: Sequence[Mapping[str, Any]], forms: Mapping[str, str] = _DIFFERS
) -> dict[str, str]:
    """Size, samples and length of the training behind a column; a range where there are several."""
    about = {}
    for name in forms:
        values = sorted({f[name] for f in facts if f.get(name) is not None})
        if values:
            ends = (_number(values[i], 2 if name == "csg" else 0) for i in (0, -1))
            about[name] = "–".join(dict.fromkeys(ends))
    return about


def _printed_order(kind: Spec, column: str) -> tuple[int, str]:
    name = dataset_name(column.split()[0])  # the paper's order, where it has the data set
    return (kind.values.index(name) if name in kind.values else len(kind.values), column)


def dataset_name(name: str) -> str:
    """The paper's abbreviation for a data set, to know it by; its own name where the paper has none.

    >>> dataset_name("data/flowers102_32.npz"), dataset_name("mine")
    ('FLW', 'mine')
    """
    plain = re.sub(r"[^a-z0-9_]", "", name.lower().rpartition("/")[2].removesuffix(".npz"))
    short = re.sub(r"_\d+$", "", plain)
    for candidate in (plain, short):
        if (key := candidate.replace("_", "")) in _DATASETS:
            return _DATASETS[key]
    return name


def model_name(name: str) -> str:
    """The paper's name of a standard model; its own name where the paper has none."""
    return _model_names().get(name.rpartition("/")[2], name)


@cache  # asked for every condition of a store
def _model_names() -> dict[str, str]:
    widths = table("widths")
    return {
        str(name): str(model) for name, model in zip(widths["name"], widths["model"], strict=True)
    }


def _number(value: Any, digits: int = 0) -> str:
    """As people write it: 18,000."""
    return f"{value:,.{digits}f}" if isinstance(value, int | float) else str(value)


def described(frame: pd.DataFrame, block: str) -> tuple[str, dict[str, dict[str, str]]]:
    """What the numbers of a block stand on: what all its columns share, as a text; and rows of what they do not.

    The last row is n: conditions, and in brackets the runs behind each cell.
    """
    columns = [column for own, column in frame.attrs["n"] if own == block]
    shared, rows = [], {}
    for name, form in _DIFFERS.items():
        values = {column: frame.attrs["about"][block, column].get(name, "") for column in columns}
        if len(set(values.values())) > 1:
            rows[form.format("").strip()] = values
        elif value := values[columns[0]]:
            words = (form.rstrip("s") if value == "1" else form).format(value)
            shared += [words] if words not in block else []
    counts = {column: frame.attrs["n"][block, column] for column in columns}
    rows["n"] = {column: f"{many} ({runs:,})" for column, (many, runs) in counts.items()}
    return ", ".join(shared), rows


def task_rows(frame: pd.DataFrame) -> dict[str, dict[str, str]]:
    """The paper's two lines below the data sets, for the runs behind each column: csg and number of classes."""
    tasks = frame.attrs["tasks"]  # none where columns are models
    return {
        label: {column: facts.get(name, "") for column, facts in tasks.items()}
        for name, label in _TASK.items()
        if tasks
    }
