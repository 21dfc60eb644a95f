"""A user's own runs in the layout of the paper's tables: same rows, same columns, same marks."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from tstar.curves import Curve, grids, read
from tstar.curves.reading import Metric
from tstar.errors import TstarError, require, unknown
from tstar.fitting.comparison import coefficient_table, correction_table
from tstar.fitting.environments import per_environment
from tstar.formula.equation import temperature
from tstar.paper.catalogue import METHODS, VARIANTS, Spec, expected_marks, spec
from tstar.paper.loading import table
from tstar.paper.longform import BLOCKS

if TYPE_CHECKING:
    import pandas as pd

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


def yours(
    name: str, runs: pd.DataFrame | str | os.PathLike[str], *, metric: Metric = "test"
) -> pd.DataFrame:
    """The table ``name`` as the given runs fill it, accuracies in %.

    The paper's rows come first; models and data sets that it does not have get blocks and columns
    of their own. A grid of fixed temperatures stands for T = 1 and √M (without norm) and for the
    four variants (with BN): at the run within 1 % of the method's T, else interpolated between its
    neighbours, and then listed in ``attrs["interpolated"]`` as (row, column). A diverged run counts
    as chance. Means over seeds, widths and settings; missing where there is no run. The tables of
    coefficients are fitted to the runs, as :mod:`tstar.fitting` does.
    """
    kind = spec(name)
    if name == "environments":
        return per_environment(runs, metric=metric)
    if name == "corrections":
        return correction_table(runs, metric=metric)
    if name == "coefficients":
        return coefficient_table(runs, metric=metric)
    if not kind.marked:
        raise TstarError(
            f"Runs can be set next to a table of results, got {name!r}; choose environments, corrections, "
            "coefficients, models, transformers, datasets or smoothing."
        )
    if metric not in ("val", "test"):
        raise unknown("metric", metric, ("val", "test"))
    return _measured(kind, read(runs), metric)


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
            marks.loc[part.index, column] = expected_marks(values)
    return marks


def _measured(kind: Spec, runs: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    pd = require("pandas", "fit")
    cells = pd.DataFrame([*_named(kind, runs, metric), *_fixed(kind, runs, metric)])
    if cells.empty:
        raise TstarError(
            f"Some run must belong to a row of the table {kind.name!r} (T = 1, √M, Insert LN, or T* of a variant "
            f"with BN), got none among {len(runs)}; a grid of fixed temperatures must surround T*."
        )
    rows = table(kind.name)[list(kind.keys)]
    if kind.block:
        own = [
            block for block in dict.fromkeys(cells["block"]) if block not in set(rows[kind.block])
        ]
        extra = [{kind.block: block, "method": method} for block in own for method in METHODS]
        rows = pd.concat([rows, pd.DataFrame(extra, columns=list(kind.keys))], ignore_index=True)
    columns = [*kind.values, *sorted(set(cells["column"]) - set(kind.values))]
    frame = rows.reset_index(drop=True)
    groups = cells.groupby(["block", "method", "column"])
    means, guesses = groups["accuracy"].mean(), groups["interpolated"].any()
    guessed = set()
    for column in columns:
        keys = [
            (line[kind.block] if kind.block else "", line["method"], column)
            for _, line in frame.iterrows()
        ]
        frame[column] = [float(means.get(key, math.nan)) for key in keys]
        guessed |= {(row, column) for row, key in enumerate(keys) if guesses.get(key, False)}
    if kind.average:
        frame[kind.average] = math.nan
        for _, part in frame.groupby(kind.block) if kind.block else [("", frame)]:
            # Over the columns that the block fills at all: a row with a gap has no average.
            filled = [column for column in columns if part[column].notna().any()]
            if filled:
                average = part[filled].mean(axis=1, skipna=False)
                frame.loc[part.index, kind.average] = average
    frame.attrs["interpolated"] = guessed
    return frame


def _named(kind: Spec, runs: pd.DataFrame, metric: Metric) -> Iterator[dict[str, Any]]:
    """Cells from the runs whose method has a name."""
    for row in runs.to_dict("records"):
        method = _NAMES.get(str(row.get("method")).partition("+")[0])
        if not method:  # most rows of a large store are grids of fixed temperatures
            continue
        accuracy, place = _accuracy(row, metric), _place(kind, row)
        if accuracy is not None and place:
            yield {**place, "method": method, "accuracy": accuracy, "interpolated": False}


def _fixed(kind: Spec, runs: pd.DataFrame, metric: Metric) -> Iterator[dict[str, Any]]:
    """Cells from grids of fixed temperatures: at the method's T, measured or interpolated there."""
    for norm in ("none", "batch"):
        here = runs[runs["norm"] == norm] if "norm" in runs else runs[[norm == "batch"] * len(runs)]
        if "method" in here:
            here = here[here["method"] == "fixed"]
        if "status" in here:
            here = here[here["status"].isin(("done", "diverged"))]
        if here.empty:
            continue
        for condition in grids(here, metric=metric, norm=None, method=None):
            place = _place(kind, condition.facts)
            for method, T in _targets(norm, condition.facts) if place else ():
                found = _at(condition, T, metric)
                if found is not None:
                    accuracy, guess = found
                    yield {
                        **(place or {}),
                        "method": method,
                        "accuracy": 100 * accuracy,
                        "interpolated": guess,
                    }


def _at(curve: Curve, T: float, metric: Metric) -> tuple[float, bool] | None:
    """Mean accuracy at T: as measured within 1 % of it, else interpolated if the grid surrounds it."""
    means = curve.means(metric)
    for level, mean in zip(curve.temperatures, means, strict=True):
        if math.isclose(level, T, rel_tol=0.01):
            return float(mean), False
    if len(means) >= 3 and curve.temperatures[0] < T < curve.temperatures[-1]:
        return curve.at(T, metric), True
    return None


def _targets(norm: str, facts: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The methods that a grid with this norm can stand for, each with its T."""
    features, classes, csg = (facts.get(name) for name in ("num_features", "num_classes", "csg"))
    if norm == "none":
        yield "T=1", 1.0
        if features:
            yield "T=sqrt(M)", math.sqrt(features)
        return
    for variant in VARIANTS:
        if features and (classes or "cn" not in variant) and (csg or not variant.startswith("csg")):
            whole = int(classes) if classes else None
            yield variant, temperature(int(features), whole, csg or None, variant=variant)


def _place(kind: Spec, facts: Mapping[str, Any]) -> dict[str, str] | None:
    """Block and column of a run, the paper's where it has them and the user's own names elsewhere."""
    smoothed = bool(_number(facts.get("label_smoothing"))) or "label-smoothing" in str(
        facts.get("method")
    )
    if smoothed != (kind.name == "smoothing"):
        return None
    data, model = dataset_name(str(facts.get("dataset"))), model_name(str(facts.get("model")))
    scenario = str(facts.get("scenario") or "scratch")
    if kind.name in ("models", "transformers"):
        if scenario != "scratch" or (kind.name == "transformers" and data != "CT"):
            return None
        return {"block": data if kind.block else "", "column": model}
    fits = [block for block in _printed_blocks(kind.name) if BLOCKS[block] == (model, scenario)]
    own = f"{model} {'init' if scenario == 'scratch' else 'FT'}"
    return {"block": fits[0] if fits else own, "column": data}


@cache
def _printed_blocks(name: str) -> tuple[str, ...]:
    """The blocks of a printed table. Asked for every run, so that the table is read once only."""
    return tuple(dict.fromkeys(table(name)["scenario"]))


def _accuracy(row: dict[str, Any], metric: str) -> float | None:
    """Accuracy [%] of a run that ended; a diverged one is at chance."""
    status = row.get("status", "done")
    if status == "diverged":
        classes = _number(row.get("num_classes"))
        return None if not classes else 100 / classes
    value = _number(row.get(f"{metric}_accuracy"))
    return None if status != "done" or value is None else 100 * value


def dataset_name(name: str) -> str:
    """The paper's abbreviation for a data set; its own name where the paper has none.

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


@cache  # asked for every run of a store
def _model_names() -> dict[str, str]:
    widths = table("widths")
    return {
        str(name): str(model) for name, model in zip(widths["name"], widths["model"], strict=True)
    }


def _number(value: Any) -> float | None:
    return None if value is None or value != value else float(value)
