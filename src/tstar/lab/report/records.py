"""From a store to records: what every figure, table and page of a report is made of."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tstar.errors import TstarError
from tstar.formula import Coefficients, as_coefficients, get
from tstar.lab.curves import FACTS, Condition, Curve, conditions, read
from tstar.lab.curves.conditions import without
from tstar.lab.curves.reading import Metric, ordinary
from tstar.lab.paper.catalogue import METHODS
from tstar.lab.report.law import law, of_paper
from tstar.lab.sweep.spec import LABELS, OWN, TABLE
from tstar.text import printable

# Facts that stand elsewhere in a figure or table, or that follow from the data set.
_ELSEWHERE = ("dataset", "num_classes", "model", "num_features", "source")
SETTING = ("optimizer", "lr", "epochs", "steps")  # what is said of every training
# Facts whose value says what it is a value of.
_PLAIN = ("dataset", "model", "optimizer", "schedule", "scenario")


@dataclass(frozen=True, eq=False)
class Sweep:
    """One curve of accuracy against T, with its condition, the T that is judged, and its title.

    ``law`` is ``None`` if the law was not measured on such a training. ``title`` is data set, model
    and how it was trained, as far as conditions differ, without M and norm.
    """

    curve: Curve
    condition: Condition
    metric: Metric
    law: float | None
    title: str

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.curve.facts

    @property
    def temperatures(self) -> tuple[float, ...]:
        return tuple(self.curve.temperatures.tolist())

    @property
    def best(self) -> float:
        """The oracle's T along the seeds that have the whole grid."""
        return self.curve.matched().best

    def seen(self, T: float) -> NDArray[np.float64]:
        """The accuracy of each seed that was run at this temperature."""
        return np.array([*self.curve.by_seed(T, self.metric).values()])

    def outside(self, T: float) -> bool:
        """Whether a temperature lies outside the grid, where accuracy is taken as constant."""
        return not self.temperatures[0] <= T <= self.temperatures[-1]


@dataclass(frozen=True, eq=False)
class Records:
    """A store as a report sees it."""

    path: str  # as it was given
    checksum: str  # SHA-256
    frame: pd.DataFrame  # one row per run, plain types
    metric: Metric  # the accuracy that is reported
    chosen_on: Metric  # the one that chose the best T
    formula: str  # which one gives the T that is judged
    label: str  # that T, in short
    options: Mapping[str, str]  # of the command line, which say the same
    sweeps: tuple[Sweep, ...] = field(repr=False)  # the grids of fixed temperatures
    conditions: tuple[Condition, ...] = field(repr=False)  # all, with their methods
    title: Callable[[Mapping[str, Any]], str] = field(repr=False)  # facts → how it was trained

    def command(self, *words: str) -> str:
        """A command line about this store that gives the same numbers."""
        options = [word for pair in self.options.items() for word in pair]
        return shlex.join(["tstar", *words, self.path, *options])

    def with_norm(self, norm: str, temperatures: int = 2) -> list[Sweep]:
        """The sweeps under a norm that have at least so many temperatures."""
        there = (s for s in self.sweeps if len(s.temperatures) >= temperatures)
        return [s for s in there if s.curve.norm == norm]

    def judged(self) -> list[Sweep]:
        """The sweeps that a T is judged on: with BN, three temperatures and such a T."""
        swept = self.with_norm("batch", 3)
        if not swept:
            raise TstarError(
                "No condition has BN and three temperatures; "
                'add norm = "batch" and temperatures to the study.'
            )
        found = [sweep for sweep in swept if sweep.law is not None]
        if not found:
            raise TstarError(
                f"No condition of {len(swept)} with BN has a T to judge: its classes or csg are not "
                "known, or the law was not measured on such trainings (their loss, optimizer, or "
                "lr·steps). Judge a formula of the paper instead: --variant base."
            )
        return found

    def pairs(self) -> list[tuple[Sweep, Sweep]]:
        """(without BN, with BN) for every condition that was swept both ways."""
        plain = {without(s.facts, "norm"): s for s in self.with_norm("none", 1)}
        found = [(plain.get(without(s.facts, "norm")), s) for s in self.with_norm("batch", 1)]
        return [(first, second) for first, second in found if first is not None]


def load(
    path: str | os.PathLike[str],
    *,
    metric: Metric = "test",
    variant: Coefficients | str | os.PathLike[str] | None = None,
    where: str | None = None,
    study: str | None = None,
) -> Records:
    """Read a store for a report.

    Args:
        path: the store (``.db``, ``.parquet`` or ``.csv``).
        metric: the accuracy to report, ``"test"`` as in the paper, or ``"val"``.
        variant: what is judged in place of tstar's law: a variant of the paper, or a set of your
            own, as a record or a ``.json`` file.
        where: a condition that the runs must meet, such as ``'lr == 0.1'``.
        study: the file of a study, whose runs alone are taken.
    """
    frame = _named(ordinary(read(path, where, study)))
    every = tuple(conditions(frame))
    law_of, formula, label = _judge(variant)
    title, sweeps = _titles([one.facts for one in every]), []
    for one in every:
        for curve in one.curves:
            if curve.fixed:
                curve.values(metric)  # or an error that names the runs without
                sweeps.append(Sweep(curve, one, metric, law_of(one.facts), title(curve.facts)))
    validated = bool(sweeps) and all(sweep.curve.chosen_on == "val" for sweep in sweeps)
    options = {"metric": metric, "variant": variant, "where": where, "study": study}
    given = {f"--{n}": os.fspath(v) for n, v in options.items() if isinstance(v, str | os.PathLike)}
    return Records(
        path=os.fspath(path),
        checksum=hashlib.sha256(Path(path).read_bytes()).hexdigest(),
        frame=frame,
        metric=metric,
        chosen_on="val" if validated else metric,
        formula=formula,
        label=label,
        options=given,
        sweeps=tuple(sweeps),
        conditions=every,
        title=title,
    )


def _judge(
    variant: Coefficients | str | os.PathLike[str] | None,
) -> tuple[Callable[[Mapping[str, Any]], float | None], str, str]:
    """Facts → T; which formula that is, in words; and what its T is called."""
    if variant is None:
        return law, "tstar's own, at each run's own learning rate", "the law's T"
    if isinstance(variant, str) and not variant.endswith(".json"):
        chosen, label = get(variant), METHODS.get(variant, "")
    else:
        chosen = as_coefficients(variant)
        label = f"the T of {printable(chosen.name)}"
    return partial(of_paper, chosen=chosen), f"coefficient set {chosen.name!r}", label


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with parts of one's own by the function's name; two of a name keep their files."""
    names = [name for name in OWN if name in frame]
    parts = {v for name in names for v in frame[name].dropna().unique() if ".py:" in str(v)}
    short = {part: str(part).rpartition(":")[2] for part in parts}
    told = {part: name for part, name in short.items() if [*short.values()].count(name) == 1}
    return frame.assign(**{name: frame[name].replace(told) for name in names}) if told else frame


def _titles(every: Sequence[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], str]:
    """Facts → data set, model, optimizer, rate, length, own loss, and what else differs."""
    names = [name for name in FACTS if name not in _ELSEWHERE]
    places = pd.DataFrame(every, columns=FACTS).groupby(["dataset", "model"], dropna=False)
    counts = places[names].nunique(dropna=False).max()
    shown = {*counts.index[counts > 1], *SETTING}
    # Epochs or steps, whichever has fewer values; both if one does not tell conditions apart.
    epochs, steps = (len({facts.get(name) for facts in every}) for name in ("epochs", "steps"))
    length, spare = ("steps", "epochs") if steps < epochs else ("epochs", "steps")
    alone = len({without(facts, spare) for facts in every}) == len(every)
    if alone and all(facts.get(length) for facts in every):
        shown.discard(spare)

    def title(facts: Mapping[str, Any]) -> str:
        own = {"loss"} if facts.get("loss") != "cross-entropy" else set()
        said = (say(n, facts.get(n)) for n in names if n in shown | own)
        setting = ", ".join(filter(None, said))
        parts = (say("dataset", facts.get("dataset")), say("model", facts.get("model")), setting)
        return " · ".join(filter(None, parts))

    return title


def say(name: str, value: Any) -> str:
    """A fact in words: "16 px", "lr 0.1", "M = 64"; empty if it is missing."""
    shown, label = text(value), LABELS[name]
    if not shown or name in _PLAIN:
        return shown
    if unit := TABLE[name].metadata["unit"]:
        return f"{shown} {unit}"
    return f"{label} = {shown}" if len(label) == 1 else f"{label} {shown}"


def text(value: Any) -> str:
    """A value as people write it, nothing if it is missing; what is hidden, escaped.

    >>> text(18000), text(0.1), text(2048.0), text(0.00005), text(None)
    ('18,000', '0.1', '2,048', '5e-05', '')
    """
    if value is None or value != value:
        return ""
    if not isinstance(value, int | float):
        return printable(value)
    whole = abs(value) >= 1000 or value == int(value)
    return f"{value:,.0f}" if whole else f"{value:.4g}"
