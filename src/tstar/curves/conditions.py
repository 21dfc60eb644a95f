"""Conditions and their curves: which runs belong together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tstar.curves.reading import (
    FACTS,
    FOLLOW,
    TREATMENT,
    Metric,
    must_have,
    plain_value,
    results,
    what_is_there,
)
from tstar.errors import TstarError, unknown

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Average = Literal["mean", "median"]
_ROUNDING = 1e-9  # of a mean accuracy: far above float64's, far below one sample
_NAMED = ("dataset", "model", "num_features", "num_classes", "csg", "norm", "scenario", "lr")


def peak(accuracies: Array) -> int:
    """Where a curve is highest, the first place on a tie: means of the same counts may differ in their last bits."""
    return int(np.argmax(accuracies >= accuracies.max() - _ROUNDING))


@dataclass(frozen=True, eq=False)
class Curve:
    """Accuracy over T, by seed, of one condition under one norm and backbone.

    Attributes:
        facts: those of the condition, and norm, backbone and method.
        temperatures: ascending, (G,).
        seeds: (S,), ascending.
        val: validation accuracies as fractions, (S, G); NaN where a seed has no run at that T, or the run
            no such number. A diverged run counts 1/K.
        test: test accuracies, likewise.
        ran: (S, G), whether there is a run.
        diverged: how many runs diverged.
    """

    facts: Mapping[str, Any]
    temperatures: Array
    seeds: tuple[int, ...]
    val: Array
    test: Array
    ran: NDArray[np.bool_] = field(repr=False)
    diverged: int = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Curve):
            return NotImplemented
        return (
            dict(self.facts) == dict(other.facts)
            and self.seeds == other.seeds
            and np.array_equal(self.temperatures, other.temperatures)
            and np.array_equal(self.val, other.val, equal_nan=True)
            and np.array_equal(self.test, other.test, equal_nan=True)
        )

    def __hash__(self) -> int:
        return hash((tuple(sorted((k, str(v)) for k, v in self.facts.items())), self.seeds))

    def __str__(self) -> str:
        return ", ".join(
            f"{name}={_show(self.facts[name])}"
            for name in _NAMED
            if self.facts.get(name) is not None
        )

    @property
    def runs(self) -> int:
        return int(self.ran.sum())

    def values(self, on: Metric = "test") -> Array:
        """The accuracies (S, G), which must be there for every run."""
        if on not in ("val", "test"):
            raise unknown("metric", on, ("val", "test"))
        found = self.val if on == "val" else self.test
        if (self.ran & np.isnan(found)).any():
            raise TstarError(
                f"{on}_accuracy is missing in a finished run of\n  "
                + ", ".join(f"{name}={_show(value)}" for name, value in self.facts.items())
            )
        return found

    def seen(self, index: int, on: Metric = "test") -> Array:
        """The accuracies at one temperature, a number for each seed that was run there."""
        column: Array = self.values(on)[:, index]
        return column[self.ran[:, index]]

    def means(self, on: Metric = "test", average: Average = "mean") -> Array:
        """Mean (or median) accuracy over seeds at each temperature, (G,)."""
        if average not in ("mean", "median"):
            raise unknown("average", average, ("mean", "median"))
        reduce = np.nanmean if average == "mean" else np.nanmedian
        found: Array = reduce(self.values(on), axis=0)
        return found

    def at(self, temperature: float, on: Metric = "test") -> float:
        """Mean accuracy at any T: linear in ln T between grid points, constant outside the grid."""
        return float(np.interp(np.log(temperature), np.log(self.temperatures), self.means(on)))

    @property
    def chosen_on(self) -> Metric:
        """What the oracle chooses by: validation accuracy, where every run has it."""
        return "test" if (self.ran & np.isnan(self.val)).any() else "val"

    @property
    def best(self) -> float:
        """The oracle's T: the best of the grid by mean validation accuracy, the lowest where several tie."""
        return float(self.temperatures[peak(self.means(self.chosen_on))])

    def index_of(self, temperature: float) -> int | None:
        """Where the grid has this T, if it does."""
        hits = np.flatnonzero(np.abs(self.temperatures / temperature - 1) < 1e-9)
        return int(hits[0]) if len(hits) else None

    def by_seed(self, temperature: float, on: Metric = "test") -> dict[int, float]:
        """The accuracy of each seed that was run at exactly this T."""
        index = self.index_of(temperature)
        if index is None:
            return {}
        here = zip(self.seeds, self.values(on)[:, index], self.ran[:, index], strict=True)
        return {seed: float(value) for seed, value, ran in here if ran}

    def at_by_seed(self, temperature: float, on: Metric = "test") -> dict[int, float]:
        """As :meth:`at`, for each seed that was run at both neighbors of T on the grid."""
        x, grid = float(np.log(temperature)), np.log(self.temperatures)
        upper = int(np.clip(np.searchsorted(grid, x), 0, len(grid) - 1))
        lower = max(upper - 1, 0) if grid[0] < x < grid[upper] else upper
        if self.index_of(temperature) is not None:
            lower = upper = self.index_of(temperature) or 0
        share = 0.0 if lower == upper else (x - grid[lower]) / (grid[upper] - grid[lower])
        values, ran = self.values(on), self.ran[:, lower] & self.ran[:, upper]
        found = (1 - share) * values[:, lower] + share * values[:, upper]
        return {s: float(v) for s, v, r in zip(self.seeds, found, ran, strict=True) if r}

    def only(self, seeds: Iterable[int]) -> Curve:
        """The same with some of its seeds; temperatures that none of them has are left out."""
        wanted = set(seeds)
        rows = [i for i, seed in enumerate(self.seeds) if seed in wanted]
        kept = self.ran[rows].any(axis=0)
        return Curve(
            self.facts,
            self.temperatures[kept],
            tuple(self.seeds[i] for i in rows),
            self.val[rows][:, kept],
            self.test[rows][:, kept],
            self.ran[rows][:, kept],
            self.diverged,
        )

    def matched(self) -> Curve:
        """The seeds that have the whole grid; all of them where none has it."""
        if self.ran.all():
            return self
        whole = [seed for seed, ran in zip(self.seeds, self.ran, strict=True) if ran.all()]
        return self.only(whole) if whole else self


@dataclass(frozen=True, eq=False)
class Condition:
    """One way of training, whatever was done to the model.

    Attributes:
        facts: see :data:`tstar.curves.FACTS`, and csg and domain of the data.
        curves: one for each norm, backbone, method and options that has temperatures.
        methods: method → seed → {"val", "test"}: the runs of methods that have a name.
    """

    facts: Mapping[str, Any]
    curves: tuple[Curve, ...]
    methods: Mapping[str, Mapping[int, Mapping[str, float]]]

    def curve(self, norm: str = "batch", backbone: str = "as-is") -> Curve | None:
        """The curve of fixed temperatures under a norm and backbone, if it was run."""
        for found in self.curves:
            facts = found.facts
            if (
                facts.get("method", "fixed") == "fixed"
                and facts.get("norm", "batch") == norm
                and facts.get("backbone", "as-is") == backbone
            ):
                return found
        return None

    def plain_by_seed(self, on: Metric = "test") -> dict[int, float]:
        """The untouched model by seed: no norm, T = 1, or the method "default"."""
        named = {seed: run[on] for seed, run in self.methods.get("default", {}).items()}
        found = self.curve("none")
        return {**named, **(found.by_seed(1.0, on) if found is not None else {})}

    def plain(self, seeds: Iterable[int] | None = None, on: Metric = "test") -> float | None:
        """Mean accuracy of the untouched model over these seeds (all of them by default)."""
        return _mean(self.plain_by_seed(on), seeds)

    def bn_one(self, seeds: Iterable[int] | None = None, on: Metric = "test") -> float | None:
        """Mean accuracy with BN at T = 1."""
        found = self.curve()
        return _mean({} if found is None else found.by_seed(1.0, on), seeds)


def _mean(by_seed: Mapping[int, float], seeds: Iterable[int] | None) -> float | None:
    wanted = [*by_seed] if seeds is None else [*seeds]
    if not wanted or not set(wanted) <= set(by_seed):
        return None
    return float(np.mean([by_seed[seed] for seed in wanted]))


def conditions(runs: pd.DataFrame) -> list[Condition]:
    """Every condition of the runs that ended, in a fixed order."""
    kept = results(runs)
    if kept.empty:
        raise TstarError(f"No finished runs found among {len(runs)}: {what_is_there(runs)}")
    names = [name for name in FACTS if name in kept.columns]
    treatment = [name for name in TREATMENT if name in kept.columns]
    found = []
    for key, group in kept.groupby(names, dropna=False, sort=False):
        facts = {name: plain_value(value) for name, value in zip(names, key, strict=True)}
        facts |= {name: _first(group[name]) for name in FOLLOW if name in group.columns}
        curves, methods = [], {}
        parts = group.groupby(treatment, dropna=False, sort=True) if treatment else [((), group)]
        for how, part in parts:
            done = {n: plain_value(v) for n, v in zip(treatment, how, strict=True)}
            values = _accuracies({**facts, **done}, part)
            seeds = _seeds(part)
            if "temperature" in part and part["temperature"].notna().any():
                curves.append(_curve({**facts, **done}, part, seeds, values))
            if done.get("method", "fixed") != "fixed":
                methods[str(done["method"])] = {
                    int(seed): {"val": float(values["val"][i]), "test": float(values["test"][i])}
                    for i, seed in enumerate(seeds)
                }
        found.append(Condition(facts, tuple(curves), methods))
    return sorted(found, key=lambda condition: order(condition.facts))


def grids(
    runs: pd.DataFrame | Sequence[Condition],
    *,
    metric: Metric | None = None,
    norm: str | None = "batch",
    method: str | None = "fixed",
    backbone: str | None = "as-is",
) -> tuple[Curve, ...]:
    """The curves under a norm, method and backbone (``None``: all), in a fixed order.

    ``runs`` is a data frame, or conditions that were read before. With ``metric``, that accuracy must be there in
    every run.
    """
    wanted = {"norm": norm, "method": method, "backbone": backbone}
    every, there = runs, f"{len(runs)} conditions"
    if not isinstance(runs, Sequence):
        must_have(runs, "temperature")
        if metric is not None:
            if metric not in ("val", "test"):
                raise unknown("metric", metric, ("val", "test"))
            must_have(runs, f"{metric}_accuracy", f" for metric={metric!r}")
        every, there = conditions(runs), f"{len(runs)} runs: {what_is_there(runs)}"
    found = [
        curve
        for condition in every
        for curve in condition.curves
        if all(value is None or curve.facts.get(n, value) == value for n, value in wanted.items())
    ]
    if not found:
        asked = ", ".join(f"{n}={value!r}" for n, value in wanted.items() if value is not None)
        raise TstarError(f"No finished runs found with {asked or 'a temperature'} among {there}")
    for curve in found if metric is not None else ():
        curve.values(metric or "test")
    return tuple(sorted(found, key=lambda curve: order(curve.facts)))


def order(facts: Mapping[str, Any]) -> tuple[tuple[int, float, str], ...]:
    """A sort key over all facts: numbers by size, then texts, then what is missing."""
    return tuple(_rank(facts.get(name)) for name in (*FACTS, *TREATMENT))


def without(facts: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    """All facts but some, to group by."""
    return tuple(facts.get(name) for name in (*FACTS, *TREATMENT) if name not in names)


def listed(found: Sequence[Curve], limit: int = 8) -> str:
    """Curves for a message, one per line."""
    more = [f"  … and {len(found) - limit} more"] if len(found) > limit else []
    return "\n".join([f"  {curve}" for curve in found[:limit]] + more)


def _seeds(group: pd.DataFrame) -> NDArray[np.int64]:
    """The seed of each run; without a column of them, runs at one T are numbered."""
    if "seed" in group.columns:
        numbers = group["seed"].fillna(0)
    elif "temperature" in group.columns:
        numbers = group.groupby("temperature", dropna=False).cumcount()
    else:
        numbers = group["dataset"].groupby(group["dataset"]).cumcount()
    seeds: NDArray[np.int64] = numbers.to_numpy(dtype=np.int64)
    return seeds


def _accuracies(facts: Mapping[str, Any], group: pd.DataFrame) -> dict[str, Array]:
    """Accuracy of each run as a fraction, diverged runs at chance; NaN where there is none."""
    where = ", ".join(f"{name}={_show(value)}" for name, value in facts.items())
    diverged = np.zeros(len(group), bool)
    if "status" in group.columns:
        diverged = (group["status"] == "diverged").to_numpy(dtype=bool)
    if diverged.any() and facts.get("num_classes") is None:
        raise TstarError(
            f"num_classes must be known where a run diverged (it counts as chance, 1/K); missing in\n  {where}"
        )
    found = {}
    for metric in ("val", "test"):
        column = f"{metric}_accuracy"
        values = np.full(len(group), np.nan)
        if column in group.columns:
            values = group[column].to_numpy(dtype=float).copy()
            values[diverged] = 1 / float(facts["num_classes"]) if diverged.any() else np.nan
        outside = values[(values < 0) | (values > 1)]
        if outside.size:
            raise TstarError(
                f"{column} must be a fraction from 0 to 1, got {outside[0]:g}; divide percentages by 100. In\n  {where}"
            )
        found[metric] = values
    return found


def _curve(
    facts: Mapping[str, Any],
    group: pd.DataFrame,
    seeds: NDArray[np.int64],
    values: Mapping[str, Array],
) -> Curve:
    """Runs on a grid; several runs of one seed at one T count as one, their mean."""
    temperature = group["temperature"].to_numpy(dtype=float)
    fixed = ~np.isnan(temperature)
    temperature, seeds = temperature[fixed], seeds[fixed]
    levels, column = np.unique(temperature, return_inverse=True)
    names, row = np.unique(seeds, return_inverse=True)
    count = np.zeros((len(names), len(levels)))
    np.add.at(count, (row, column), 1)
    means = {}
    for metric, numbers in values.items():
        total = np.zeros_like(count)
        np.add.at(total, (row, column), numbers[fixed])
        with np.errstate(invalid="ignore"):
            means[metric] = np.where(count > 0, total / count, np.nan)
    diverged = int((group["status"] == "diverged").sum()) if "status" in group else 0
    whole = tuple(int(name) for name in names)
    return Curve(facts, levels, whole, means["val"], means["test"], count > 0, diverged)


def _first(column: pd.Series) -> Any:
    """The first value that is there."""
    known = column.dropna()
    return None if known.empty else plain_value(known.iloc[0])


def _rank(value: Any) -> tuple[int, float, str]:
    if value is None:
        return (2, 0.0, "")
    return (1, 0.0, value) if isinstance(value, str) else (0, float(value), "")


def _show(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
