"""Conditions and their curves: which runs belong together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError, unknown
from tstar.lab.curves.reading import FACTS, FOLLOW, TREATMENT, Metric, plain_value, results

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
_ROUNDING = 1e-9  # of a mean accuracy: far above float64's, far below one sample
_NAMED = ("dataset", "model", "num_features", "num_classes", "csg", "norm", "scenario", "lr")


def peak(accuracies: Array) -> int:
    """The highest place of a curve, the first one on a tie."""
    return int(np.argmax(accuracies >= accuracies.max() - _ROUNDING))


@dataclass(frozen=True, eq=False)
class Curve:
    """Accuracy over T, by seed, of one condition under one norm.

    Attributes:
        facts: those of the condition, and norm, method and options.
        temperatures: ascending, (G,). seeds: ascending, (S,).
        val: accuracies as fractions, (S, G), and ``test`` likewise; NaN if a seed has no run at
            that T, or the run no such number. A diverged run counts 1/K.
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

    def __str__(self) -> str:
        return described({name: self.facts.get(name) for name in _NAMED})

    @property
    def runs(self) -> int:
        return int(self.ran.sum())

    @property
    def norm(self) -> str | None:
        """The norm before the output layer; the paper's, if the runs do not say."""
        norm: str | None = self.facts.get("norm", "batch")
        return norm

    @property
    def fixed(self) -> bool:
        """Whether its temperatures were given, not found by a method."""
        return bool(self.facts.get("method", "fixed") == "fixed")

    def values(self, on: Metric = "test") -> Array:
        """The accuracies (S, G), which must be there for every run."""
        if on not in ("val", "test"):
            raise unknown("metric", on, ("val", "test"))
        found = self.val if on == "val" else self.test
        if (self.ran & np.isnan(found)).any():
            raise TstarError(
                f"{on}_accuracy is missing in a finished run of\n  {described(self.facts)}"
            )
        return found

    def means(self, on: Metric = "test") -> Array:
        """Mean accuracy over the seeds that were run at each temperature, (G,)."""
        found: Array = np.nanmean(self.values(on), axis=0)
        return found

    def at(self, temperature: float, on: Metric = "test") -> float:
        """Mean accuracy at any T: linear in ln T between grid points, constant outside."""
        return float(np.interp(np.log(temperature), np.log(self.temperatures), self.means(on)))

    @property
    def chosen_on(self) -> Metric:
        """What the oracle chooses by: validation accuracy, if every run has it."""
        return "test" if (self.ran & np.isnan(self.val)).any() else "val"

    @property
    def best(self) -> float:
        """The oracle's T: the best of the grid by validation accuracy, the lowest on a tie."""
        return float(self.temperatures[peak(self.means(self.chosen_on))])

    def regret(self, temperature: float, on: Metric = "test") -> float:
        """Points lost to the oracle, along the seeds that have the whole grid.

        100·(accuracy at the oracle's T − accuracy at this T); negative if validation misled it.
        """
        whole = self.matched()
        return 100 * (whole.at(whole.best, on) - whole.at(temperature, on))

    def index_of(self, temperature: float) -> int | None:
        """The place of this T on the grid, if it is there."""
        hits = np.flatnonzero(np.abs(self.temperatures / temperature - 1) < 1e-9)
        return int(hits[0]) if len(hits) else None

    def by_seed(self, temperature: float, on: Metric = "test") -> dict[int, float]:
        """The accuracy of each seed that was run at exactly this T."""
        return {} if self.index_of(temperature) is None else self.at_by_seed(temperature, on)

    def at_by_seed(self, temperature: float, on: Metric = "test") -> dict[int, float]:
        """As :meth:`at`, for each seed that was run at both neighbors of T on the grid."""
        grid, x = np.log(self.temperatures), float(np.log(temperature))
        lower = max(int(np.searchsorted(grid, x + _ROUNDING, "right")) - 1, 0)
        upper = min(int(np.searchsorted(grid, x - _ROUNDING)), len(grid) - 1)
        share = 0.0 if lower == upper else (x - grid[lower]) / (grid[upper] - grid[lower])
        values, ran = self.values(on), self.ran[:, lower] & self.ran[:, upper]
        found = (1 - share) * values[:, lower] + share * values[:, upper]
        return {s: float(v) for s, v, r in zip(self.seeds, found, ran, strict=True) if r}

    def take(self, rows: Array | NDArray[np.int64]) -> Curve:
        """The seeds in these rows, which may repeat; temperatures that none has are left out."""
        there = self.ran[rows].any(axis=0)
        tables = {name: getattr(self, name)[rows][:, there] for name in ("val", "test", "ran")}
        seeds = tuple(self.seeds[i] for i in rows)
        return replace(self, temperatures=self.temperatures[there], seeds=seeds, **tables)

    def only(self, seeds: Iterable[int]) -> Curve:
        """The same with some of its seeds."""
        return self.take(np.flatnonzero(np.isin(self.seeds, [*seeds])))

    def matched(self) -> Curve:
        """The seeds that have the whole grid; all of them if none has it."""
        whole = [seed for seed, ran in zip(self.seeds, self.ran, strict=True) if ran.all()]
        return self.only(whole) if whole and len(whole) < len(self.seeds) else self


@dataclass(frozen=True, eq=False)
class Condition:
    """One way of training, whatever was done to the model.

    Attributes:
        facts: see :data:`tstar.lab.curves.FACTS`, and csg and domain of the data.
        curves: one for each norm, method and options that has temperatures.
        methods: method → seed → {"val", "test"}: the runs of methods that have a name.
    """

    facts: Mapping[str, Any]
    curves: tuple[Curve, ...]
    methods: Mapping[str, Mapping[int, Mapping[str, float]]]

    def curve(self, norm: str = "batch") -> Curve | None:
        """The curve of fixed temperatures under a norm, if it was run."""
        return next((c for c in self.curves if c.fixed and c.norm == norm), None)

    def plain_by_seed(self, on: Metric = "test") -> dict[int, float]:
        """The untouched model by seed: no norm, T = 1, or the method "default"."""
        named = {seed: run[on] for seed, run in self.methods.get("default", {}).items()}
        found = self.curve("none")
        return {**named, **(found.by_seed(1.0, on) if found is not None else {})}


def conditions(runs: pd.DataFrame) -> list[Condition]:
    """Every condition of the runs that ended, in a fixed order."""
    kept = results(runs)
    names = [name for name in FACTS if name in kept.columns]
    kept = _complete(kept, names)
    found = []
    for key, group in kept.groupby(names, dropna=False, sort=False):
        facts = {name: plain_value(value) for name, value in zip(names, key, strict=True)}
        for name in (name for name in FOLLOW if name in group.columns):
            facts[name] = next((plain_value(value) for value in group[name].dropna()), None)
        curves, methods = [], {}
        for how, part in group.groupby([*TREATMENT], dropna=False, sort=True):
            done = {n: plain_value(v) for n, v in zip(TREATMENT, how, strict=True)}
            done = facts | {n: v for n, v in done.items() if n in runs.columns}
            if part["temperature"].notna().any():
                curves.append(_curve(done, part))
            if done.get("method", "fixed") != "fixed":
                rows = zip(part["seed"], part["val"], part["test"], strict=True)
                scores = {int(seed): {"val": val, "test": test} for seed, val, test in rows}
                methods[str(done["method"])] = scores
        found.append(Condition(facts, tuple(curves), methods))
    return sorted(found, key=lambda condition: order(condition.facts))


def _complete(kept: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The runs with every treatment, a seed, and accuracies as fractions: 1/K if they diverged.

    Without a column of seeds, the runs of a curve at one T are numbered.
    """
    wanted = (*TREATMENT, "temperature", "num_classes", "val_accuracy", "test_accuracy")
    kept = kept.assign(**{name: np.nan for name in wanted if name not in kept.columns})
    gone = kept["status"].eq("diverged") if "status" in kept else kept["dataset"].isna()
    unknown_chance = kept[gone & kept["num_classes"].isna()]
    if len(unknown_chance):
        raise TstarError(
            "num_classes must be known if a run diverged (it counts as chance, 1/K); missing in\n  "
            + described(unknown_chance[names].iloc[0])
        )
    found = {"diverged": gone}
    for metric in ("val", "test"):
        values = kept[f"{metric}_accuracy"].astype(float)
        found[metric] = values.mask(gone, 1 / kept["num_classes"].astype(float))
        outside = kept[(found[metric] < 0) | (found[metric] > 1)]
        if len(outside):
            raise TstarError(
                f"{metric}_accuracy must be a fraction from 0 to 1, got "
                f"{outside[f'{metric}_accuracy'].iloc[0]:g}; divide percentages by 100. In\n  "
                + described(outside[names].iloc[0])
            )
    if "seed" in kept:
        found["seed"] = kept["seed"].fillna(0)
    else:
        curve = [*names, *TREATMENT, "temperature"]
        found["seed"] = kept.groupby(curve, dropna=False).cumcount()
    return kept.assign(**found)


def grids(
    runs: pd.DataFrame | Sequence[Condition], *, norm: str | None = "batch"
) -> tuple[Curve, ...]:
    """The curves of fixed temperatures under a norm (``None``: all), in a fixed order.

    ``runs`` is a data frame, or conditions that were read before.
    """
    every = list(runs) if isinstance(runs, Sequence) else conditions(runs)
    fixed = [curve for condition in every for curve in condition.curves if curve.fixed]
    found = [curve for curve in fixed if norm in (None, curve.norm)]
    if not found:
        norms = sorted({str(curve.norm) for curve in fixed})
        raise TstarError(
            f"No finished runs at fixed temperatures found with norm={norm!r} in "
            f"{len(every)} conditions; they have norm: {', '.join(norms) or 'none at all'}."
        )
    return tuple(sorted(found, key=lambda curve: order(curve.facts)))


def order(facts: Mapping[str, Any]) -> tuple[tuple[int, float, str], ...]:
    """A sort key over all facts: numbers by size, then texts, then what is missing."""

    def rank(value: Any) -> tuple[int, float, str]:
        if value is None:
            return (2, 0.0, "")
        return (1, 0.0, value) if isinstance(value, str) else (0, float(value), "")

    return tuple(rank(facts.get(name)) for name in (*FACTS, *TREATMENT))


def without(facts: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    """All facts but some, to group by."""
    return tuple(facts.get(name) for name in (*FACTS, *TREATMENT) if name not in names)


def described(facts: Mapping[str, Any]) -> str:
    """The facts that are known, for a message."""
    known = [(name, value) for name, value in facts.items() if plain_value(value) is not None]
    return ", ".join(f"{n}={v:g}" if isinstance(v, float) else f"{n}={v}" for n, v in known)


def listed(found: Sequence[object], limit: int = 8) -> str:
    """What a message lists, one per line."""
    more = [f"  … and {len(found) - limit} more"] if len(found) > limit else []
    return "\n".join([f"  {one}" for one in found[:limit]] + more)


def _curve(facts: Mapping[str, Any], group: pd.DataFrame) -> Curve:
    """Runs on a grid; several runs of one seed at one T count as one, their mean."""
    group = group[group["temperature"].notna()]
    levels, column = np.unique(group["temperature"].to_numpy(float), return_inverse=True)
    seeds, row = np.unique(group["seed"].to_numpy(np.int64), return_inverse=True)
    count = np.zeros((len(seeds), len(levels)))
    np.add.at(count, (row, column), 1)
    means = {}
    for metric in ("val", "test"):
        total = np.zeros_like(count)
        np.add.at(total, (row, column), group[metric].to_numpy(float))
        blank = np.full_like(total, np.nan)
        means[metric] = np.divide(total, count, out=blank, where=count > 0)
    own, diverged = tuple(seeds.tolist()), int(group["diverged"].sum())
    return Curve(facts, levels, own, means["val"], means["test"], count > 0, diverged)
