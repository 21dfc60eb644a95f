"""From a store to records: what every figure, table and page of a report is made of. No drawing here."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError, require, unknown
from tstar.fitting.curves import curves
from tstar.fitting.runs import CONDITION, Condition, Metric, conditions, read
from tstar.formula.coefficients import Coefficients, as_coefficients, get
from tstar.formula.equation import temperature

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
# Facts that a panel shows in its title or on its axes, or that follow from the data set.
_SHOWN = ("dataset", "domain", "num_classes", "csg", "model", "num_features", "norm", "method")


@dataclass(frozen=True)
class Sweep:
    """One condition, that is one curve of accuracy against T.

    Attributes:
        condition: its facts, temperatures and accuracies, as :mod:`tstar.fitting` groups them.
        choosing: mean accuracy at each T that decides which T is best: of validation data where the
            store has them, so that the accuracy reported there was not what chose it.
        recommended: the formula's T, or ``None`` where the facts do not allow one.
        setting: what tells it from other conditions of the same data set, model and M; often empty.
    """

    condition: Condition
    choosing: tuple[float, ...]
    recommended: float | None
    setting: str = ""

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.condition.facts

    @property
    def temperatures(self) -> tuple[float, ...]:
        return self.condition.temperatures

    @property
    def best(self) -> int:
        """The index of the best T, the lowest where several tie."""
        return int(np.argmax(self.choosing))

    @property
    def title(self) -> str:
        """Data set, model and setting, without M and norm."""
        parts = [text(self.facts.get("dataset")), text(self.facts.get("model")), self.setting]
        return " · ".join(part for part in parts if part)

    def mean(self, index: int) -> float:
        return float(np.mean(self.condition.accuracies[index]))

    def standard_error(self, index: int) -> float | None:
        """Of the mean over seeds; ``None`` with a single one."""
        values = self.condition.accuracies[index]
        return (
            None if len(values) < 2 else float(np.std(values, ddof=1)) / float(len(values)) ** 0.5
        )

    def at(self, T: float) -> float:
        """Mean accuracy at any T: linear interpolation between the means, the paper's step (i)."""
        return float(self.line(np.array([T]))[0])

    def line(self, temperatures: Array) -> Array:
        """As :meth:`at`, for many temperatures."""
        found: Array = curves([self.condition])(temperatures[:, None])[:, 0]
        return found

    def index_of(self, T: float) -> int | None:
        """Where the grid has this T, if it does."""
        hits = [i for i, level in enumerate(self.temperatures) if abs(level / T - 1) < 1e-9]
        return hits[0] if hits else None


@dataclass(frozen=True)
class Environment:
    """The sweeps of one data set, model and setting under one norm, M ascending."""

    title: str
    norm: str
    sweeps: tuple[Sweep, ...]

    @property
    def csg(self) -> float | None:
        return number(self.sweeps[0].facts.get("csg"))


@dataclass(frozen=True, eq=False)
class Records:
    """A store as a report sees it.

    Attributes:
        name, checksum: the file's name, and the SHA-256 of its bytes.
        frame: one row a run that is no longer under way, plain types, ``None`` or NaN for missing.
        metric: the accuracy that is reported; ``chosen_on``: the one that chose the best T.
        formula: in words, which coefficients recommend T.
        sweeps: the grids of fixed temperatures.
    """

    name: str
    checksum: str
    frame: pd.DataFrame
    metric: Metric
    chosen_on: Metric
    formula: str
    sweeps: tuple[Sweep, ...] = field(repr=False)

    def with_norm(self, norm: str, temperatures: int = 2) -> tuple[Sweep, ...]:
        """The sweeps under a norm that have at least so many temperatures."""
        return tuple(
            s
            for s in self.sweeps
            if s.facts.get("norm") == norm and len(s.temperatures) >= temperatures
        )

    def environments(self, norm: str) -> tuple[Environment, ...]:
        """The sweeps under a norm, grouped by all facts but M."""
        groups: dict[tuple[Any, ...], list[Sweep]] = {}
        for sweep in self.with_norm(norm):
            groups.setdefault(without(sweep, "num_features", "norm"), []).append(sweep)
        found = [
            Environment(
                group[0].title, norm, tuple(sorted(group, key=lambda s: s.facts["num_features"]))
            )
            for group in groups.values()
        ]
        return tuple(sorted(found, key=lambda e: e.title))

    def pairs(self) -> tuple[tuple[Sweep, Sweep], ...]:
        """(without BN, with BN) for every condition that was swept both ways."""
        plain = {without(sweep, "norm"): sweep for sweep in self.with_norm("none", 1)}
        return tuple(
            (plain[without(sweep, "norm")], sweep)
            for sweep in self.with_norm("batch", 1)
            if without(sweep, "norm") in plain
        )


def load(
    path: str | os.PathLike[str],
    *,
    metric: str = "test",
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
) -> Records:
    """Read a store (``.db``, ``.parquet`` or ``.csv``) for a report.

    Args:
        metric: the accuracy to report, ``"test"`` as in the paper, or ``"val"``.
        variant: of the paper, for the recommended T; by default the one that the evidence prefers.
        coefficients: a set of your own in place of the paper's.
    """
    if metric not in ("val", "test"):
        raise unknown("metric", metric, ("val", "test"))
    file = Path(path)
    frame = plain(read(file))
    if "status" in frame.columns:
        frame = frame[frame["status"] != "running"].reset_index(drop=True)
    if frame.empty:
        raise TstarError(f"A report needs at least one run that ended, got none in {str(path)!r}.")
    recommend, formula = _recommender(variant, coefficients)
    sweeps, chosen_on = _sweeps(frame, "test" if metric == "test" else "val", recommend)
    return Records(
        file.name,
        _checksum(file),
        frame,
        "test" if metric == "test" else "val",
        chosen_on,
        formula,
        sweeps,
    )


def _checksum(file: Path) -> str:
    """SHA-256 of a file, a piece at a time: stores with learning curves are large."""
    found = hashlib.sha256()
    with file.open("rb") as source:
        while piece := source.read(1 << 22):
            found.update(piece)
    return found.hexdigest()


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with ordinary types: exports bring nullable ones, whose missing value has no truth."""
    pd = require("pandas", "fit")
    columns = {}
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column.dtype):
            columns[name] = column.astype(float) if column.isna().any() else column.to_numpy()
        else:
            columns[name] = column.astype(object).where(column.notna(), None)
    return pd.DataFrame(columns)


def _sweeps(
    frame: pd.DataFrame, metric: Metric, recommend: Callable[[Mapping[str, Any]], float | None]
) -> tuple[tuple[Sweep, ...], Metric]:
    swept = frame
    if "method" in frame.columns:
        swept = frame[frame["method"] == "fixed"]
    if "temperature" not in frame.columns or swept["temperature"].notna().sum() == 0:
        return (), metric
    if "status" in swept.columns and not swept["status"].isin(("done", "diverged")).any():
        return (), metric
    found = conditions(swept, metric=metric, norm=None, method=None)
    chosen_on: Metric = "val" if _complete(swept, "val_accuracy") else metric
    by = conditions(swept, metric=chosen_on, norm=None, method=None)
    settings = _settings(found)
    return tuple(
        Sweep(
            condition,
            tuple(float(np.mean(values)) for values in choosing.accuracies),
            recommend(condition.facts),
            setting,
        )
        for condition, choosing, setting in zip(found, by, settings, strict=True)
    ), chosen_on


def _complete(frame: pd.DataFrame, column: str) -> bool:
    if column not in frame.columns:
        return False
    done = frame[frame["status"] == "done"] if "status" in frame.columns else frame
    return bool(done[column].notna().all())


def _settings(found: Sequence[Condition]) -> list[str]:
    """For each condition, the facts in which conditions of its data set and model differ."""
    names = [name for name in CONDITION if name not in _SHOWN]
    values: dict[tuple[Any, Any], dict[str, set[Any]]] = {}
    for c in found:
        place = values.setdefault((c.facts.get("dataset"), c.facts.get("model")), {})
        for name in names:
            place.setdefault(name, set()).add(c.facts.get(name))
    result = []
    for c in found:
        place = values[(c.facts.get("dataset"), c.facts.get("model"))]
        varying = [
            f"{name}={text(c.facts.get(name))}"
            for name in names
            if len(place[name]) > 1 and c.facts.get(name) is not None
        ]
        result.append(", ".join(varying))
    return result


def _recommender(
    variant: str | None, coefficients: Coefficients | str | os.PathLike[str] | None
) -> tuple[Callable[[Mapping[str, Any]], float | None], str]:
    """Facts → T, and which formula that is, in words."""
    if coefficients is not None:
        coefficients = as_coefficients(coefficients)
        label = f"the coefficient set {coefficients.name!r}"
    elif variant is not None:
        label = f"the paper's coefficients, variant {variant!r}"
        if get(variant).budget is not None:  # an unknown name is refused here, not later
            coefficients, variant = get(variant), None
            label = "the paper's cn, no hotter than each training allows"
    else:
        label = (
            "the paper's coefficients, the variant that its evidence prefers for each condition "
            "(as tstar.recommend chooses where it is not told how one trains)"
        )

    def recommend(facts: Mapping[str, Any]) -> float | None:
        from tstar.advice import choose_variant  # brings torch

        features, classes, csg = (
            number(facts.get(name)) for name in ("num_features", "num_classes", "csg")
        )
        if features is None:
            return None
        scenario = str(facts.get("scenario") or "scratch")
        chosen = variant
        if coefficients is None and variant is None:
            chosen, _ = choose_variant(csg, scenario)
        told: dict[str, Any] = {}
        if coefficients is not None and coefficients.budget is not None:
            told = {name: facts.get(name) for name in ("lr", "optimizer", "steps")}
            told["momentum"] = number(facts.get("momentum")) or 0.0
        try:
            return temperature(
                int(features),
                None if classes is None else int(classes),
                csg or None,
                variant=chosen,
                coefficients=coefficients,
                **told,
            )
        except TstarError:  # a fact that the set needs is missing: this condition has no T
            return None

    return recommend, label


def without(sweep: Sweep, *names: str) -> tuple[Any, ...]:
    """All facts but some, to group by."""
    return tuple(sweep.facts.get(name) for name in CONDITION if name not in names)


def number(value: Any) -> float | None:
    """A number, or ``None`` where it is missing."""
    return None if value is None or value != value else float(value)


def text(value: Any) -> str:
    """A value for a title: short numbers, nothing where it is missing."""
    if value is None or value != value:
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)
