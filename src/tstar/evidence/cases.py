"""Conditions of the atlas with their runs by seed: what a rule is judged on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tstar.fitting.runs import CONDITION, accuracies, plain_value, planned_lengths, select

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
LEAST_TEMPERATURES = 5
# Facts that follow from others, or that a run that diverged early does not have.
_NO_PART = ("epochs", "csg", "domain")


@dataclass(frozen=True, eq=False)
class Case:
    """One condition: everything but T and the seed.

    Attributes:
        facts: data set, model, M, K, csg, optimiser, lr, steps, …
        temperatures: the grid, ascending, (G,).
        val, test: accuracies, (seeds, G); a diverged run counts as chance, 1/K.
    """

    facts: dict[str, Any]
    temperatures: Array
    val: Array
    test: Array

    @property
    def seeds(self) -> int:
        return len(self.val)

    @property
    def best(self) -> float:
        """The oracle's T: the best of the grid by mean validation accuracy, the lowest of equals."""
        return float(self.temperatures[np.argmax(self.val.mean(axis=0))])

    def at(self, temperature: float, *, on: str = "test") -> float:
        """Mean accuracy at any T: linear in ln T between grid points, constant outside the grid."""
        values = (self.test if on == "test" else self.val).mean(axis=0)
        return float(np.interp(np.log(temperature), np.log(self.temperatures), values))

    def only(self, seeds: list[int]) -> Case:
        """The same with some of its seeds."""
        return Case(self.facts, self.temperatures, self.val[seeds], self.test[seeds])


def data_sets(facts: Mapping[str, Any]) -> frozenset[str]:
    """The data that a condition's samples come from, whatever their size: ``a_32+b_96`` → {a, b}."""
    return frozenset(part.partition("_")[0] for part in str(facts["dataset"]).split("+"))


def clusters(names: Sequence[str]) -> list[NDArray[np.int64]]:
    """The places of names that share data, directly or through a joined set: what is drawn when resampling."""
    groups: list[tuple[set[str], list[int]]] = []
    for place, name in enumerate(names):
        own, members = set(data_sets({"dataset": name})), [place]
        apart = []
        for parts, places in groups:
            if parts & own:
                own |= parts
                members = places + members
            else:
                apart.append((parts, places))
        groups = [*apart, (own, members)]
    return [np.array(sorted(places)) for _, places in groups]


def cases(runs: pd.DataFrame, norm: str | None = "batch", method: str = "fixed") -> list[Case]:
    """The conditions that have a grid of temperatures, each with the seeds that have all of it."""
    kept = planned_lengths(select(runs, norm=norm, method=method))
    names = [name for name in CONDITION if name in kept.columns and name not in _NO_PART]
    found = []
    for key, group in kept.groupby(names, dropna=False, sort=True):
        facts = {name: plain_value(value) for name, value in zip(names, key, strict=True)}
        facts |= {
            name: plain_value(_first(group[name])) for name in ("csg", "domain") if name in group
        }
        case = _case(facts, group)
        if case is not None:
            found.append(case)
    return found


def _first(column: pd.Series) -> Any:
    """The first value that is there: a run that diverged early may lack it."""
    known = column.dropna()
    return column.iloc[0] if known.empty else known.iloc[0]


def _case(facts: dict[str, Any], group: pd.DataFrame) -> Case | None:
    grid = np.unique(group["temperature"].to_numpy(dtype=float))
    if len(grid) < LEAST_TEMPERATURES:
        return None
    rows = list(_rows(facts, group, len(grid)))
    if not rows:
        return None
    val, test = (np.array(part) for part in zip(*rows, strict=True))
    return Case(facts, grid, val, test)


def _rows(
    facts: dict[str, Any], group: pd.DataFrame, temperatures: int
) -> Iterator[tuple[Array, Array]]:
    """Validation and test accuracy over the grid, for each seed that has all of it."""
    for _, runs in group.groupby("seed"):
        runs = runs.drop_duplicates("temperature").sort_values("temperature")
        if len(runs) == temperatures:
            yield accuracies(facts, runs, "val_accuracy"), accuracies(facts, runs, "test_accuracy")
