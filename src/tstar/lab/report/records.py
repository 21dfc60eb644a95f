"""From a store to records: what every figure, table and page of a report is made of."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tstar.errors import TstarError, unknown
from tstar.formula import Coefficients, as_coefficients, get
from tstar.lab.curves import FACTS, Condition, Curve, Judged, conditions, judge, read
from tstar.lab.curves.conditions import Average, order, without
from tstar.lab.curves.reading import Metric, ordinary
from tstar.lab.report.law import law, of_paper
from tstar.lab.sweep.columns import FINAL, TABLE, json_object
from tstar.lab.sweep.spec import OWN
from tstar.text import printable

# Facts that a panel shows in its title or on its axes, or that follow from the data set.
_SHOWN = ("dataset", "domain", "num_classes", "csg", "model", "num_features", "norm", "method")
_LAW = "tstar's own, at each run's own learning rate"
# Which accuracy, in words.
ACCURACIES = {"val": "validation", "test": "test"}
# Facts whose value says it all.
_BARE = ("optimizer", "scenario", "schedule", "dataset", "model")


@dataclass(frozen=True, eq=False)
class Sweep:
    """One curve of accuracy against T, with its condition, the T that is judged, and its title.

    ``law`` is ``None`` if the law was not measured on such a training. ``setting`` says how it was
    trained, as far as conditions differ.
    """

    curve: Curve
    condition: Condition
    metric: Metric
    law: float | None
    setting: str = ""

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.curve.facts

    @property
    def temperatures(self) -> tuple[float, ...]:
        return tuple(self.curve.temperatures.tolist())

    @property
    def title(self) -> str:
        """Data set, model and setting, without M and norm."""
        parts = [say(name, self.facts.get(name)) for name in ("dataset", "model")]
        return " · ".join(part for part in (*parts, self.setting) if part)

    @property
    def ranking(self) -> list[float]:
        """The temperatures by the accuracy that the oracle chooses by, its own T first."""
        curve = self.curve.matched()
        means = np.round(curve.means(curve.chosen_on), 9)
        return [float(curve.temperatures[i]) for i in np.argsort(-means, kind="stable")]

    def seen(self, T: float) -> NDArray[np.float64]:
        """The accuracy of each seed that was run at this temperature."""
        return np.array([*self.curve.by_seed(T, self.metric).values()])

    def judged(self, T: float) -> Judged:
        """A temperature judged on this curve."""
        found = judge(self.condition, T, norm=self.facts.get("norm") or "batch", on=self.metric)
        assert found is not None
        return found


@dataclass(frozen=True, eq=False)
class Records:
    """A store as a report sees it.

    Attributes:
        path, checksum: the file as it was given, and the SHA-256 of its bytes.
        frame: one row per run that is no longer under way, plain types.
        metric: the accuracy that is reported; ``chosen_on``: the one that chose the best T.
        average: over seeds; ``None``: means, and medians in the paper's tables.
        formula: in words, which formula gives the T that is judged; ``label``: that T, in short.
        options: the command-line options that say the same.
        sweeps: the grids of fixed temperatures. conditions: all of them, with their methods.
    """

    path: str
    checksum: str
    frame: pd.DataFrame
    metric: Metric
    chosen_on: Metric
    average: Average | None
    formula: str
    label: str
    options: Mapping[str, str]
    sweeps: tuple[Sweep, ...] = field(repr=False)
    conditions: tuple[Condition, ...] = field(repr=False)

    @property
    def averaging(self) -> Average:
        return self.average or "mean"

    def command(self, *words: str) -> str:
        """A command line about this store that gives the same numbers."""
        options = [word for pair in self.options.items() for word in pair]
        return shlex.join(["tstar", *words, self.path, *options])

    def with_norm(self, norm: str, temperatures: int = 2) -> list[Sweep]:
        """The sweeps under a norm that have at least so many temperatures."""
        own = [s for s in self.sweeps if s.facts.get("norm", "batch") == norm]
        return [s for s in own if len(s.temperatures) >= temperatures]

    def judged(self, least: int = 1) -> list[Sweep]:
        """The sweeps that a T is judged on: with BN, three temperatures and such a T."""
        swept = self.with_norm("batch", 3)
        found = [sweep for sweep in swept if sweep.law is not None]
        if len(swept) < least:
            raise TstarError(
                f"At least {least} condition{'s' * (least > 1)} with BN and three temperatures "
                f'must be there, got {len(swept)}; add norm = "batch" and temperatures to the study.'
            )
        if len(found) < least:
            why = (
                "the law was not measured on the others (their loss, optimizer, or lr·steps). "
                "Judge a formula of the paper instead: --variant base"
                if self.formula == _LAW
                else "the others lack its number of classes or csg"
            )
            raise TstarError(
                f"{len(swept)} conditions have BN and three temperatures, and {len(found)} of them "
                f"have a T to judge; {why}."
            )
        return found

    def environments(self, norm: str) -> list[list[Sweep]]:
        """The sweeps under a norm, grouped by all facts but M, which ascends."""
        groups: dict[tuple[Any, ...], list[Sweep]] = {}
        for sweep in self.with_norm(norm):
            groups.setdefault(without(sweep.facts, "num_features"), []).append(sweep)
        found = [sorted(g, key=lambda s: s.facts.get("num_features") or 0) for g in groups.values()]
        return sorted(found, key=lambda group: group[0].title)

    def pairs(self) -> list[tuple[Sweep, Sweep]]:
        """(without BN, with BN) for every condition that was swept both ways."""
        plain = {without(s.facts, "norm"): s for s in self.with_norm("none", 1)}
        found = [(plain.get(without(s.facts, "norm")), s) for s in self.with_norm("batch", 1)]
        return [(first, second) for first, second in found if first is not None]


def load(
    path: str | os.PathLike[str],
    *,
    metric: Metric = "test",
    average: Average | None = None,
    variant: str | None = None,
    coefficients: Coefficients | str | os.PathLike[str] | None = None,
    where: str | None = None,
    study: str | None = None,
) -> Records:
    """Read a store (``.db``, ``.parquet`` or ``.csv``) for a report.

    Args:
        path: the store.
        metric: the accuracy to report, ``"test"`` as in the paper, or ``"val"``.
        average: over seeds, ``"mean"`` or ``"median"``; by default means, and medians in the
            paper's tables, as it has them.
        variant: a variant of the paper that is judged in place of tstar's law.
        coefficients: a set of your own that is judged.
        where: a condition that the runs must meet, such as ``'lr == 0.1'``.
        study: the file of a study, whose runs alone are taken.

    Raises:
        TstarError: if no run has ended, or an option is unknown.
    """
    if metric not in ("val", "test"):
        raise unknown("metric", metric, ("val", "test"))
    frame = _named(ordinary(read(path, where, study)))
    if "status" in frame:
        frame = frame[frame["status"] != "running"].reset_index(drop=True)
    if frame.empty:
        raise TstarError(f"No run in {str(path)!r} has ended yet: there is nothing to report.")
    law_of, formula, label = _judge(variant, coefficients)
    ended = "status" not in frame or frame["status"].isin(FINAL).any()
    every = tuple(conditions(frame, average or "mean")) if ended else ()
    curves = [(curve, one) for one in every for curve in one.curves]
    fixed = [(c, one) for c, one in curves if c.facts.get("method", "fixed") == "fixed"]
    for curve, _ in fixed:
        curve.values(metric)  # or an error that names the runs without
    setting = _setting([curve.facts for curve, _ in fixed], frame.get("spec", ()))
    sweeps = [Sweep(c, one, metric, law_of(one.facts), setting(c.facts)) for c, one in fixed]
    validated = bool(sweeps) and all(sweep.curve.chosen_on == "val" for sweep in sweeps)
    options: dict[str, Any] = {"metric": metric, "average": average, "variant": variant}
    options |= {"coefficients": coefficients, "where": where, "study": study}
    given = {f"--{n}": os.fspath(v) for n, v in options.items() if isinstance(v, str | os.PathLike)}
    return Records(
        path=os.fspath(path),
        checksum=hashlib.sha256(Path(path).read_bytes()).hexdigest(),
        frame=frame,
        metric=metric,
        chosen_on="val" if validated else metric,
        average=average,
        formula=formula,
        label=label,
        options=given,
        sweeps=tuple(sorted(sweeps, key=lambda sweep: order(sweep.facts))),
        conditions=every,
    )


def _judge(
    variant: str | None, coefficients: Coefficients | str | os.PathLike[str] | None
) -> tuple[Callable[[Mapping[str, Any]], float | None], str, str]:
    """Facts → T; which formula that is, in words; and what its T is called."""
    if coefficients is not None:
        chosen = as_coefficients(coefficients)
        words = (f"coefficient set {chosen.name!r}", f"the T of {printable(chosen.name)}")
        return lambda facts: of_paper(facts, chosen=chosen), *words
    if variant is not None:
        get(variant)  # an unknown name is refused here, not later
        words = (f"the paper's variant {variant!r}", f"the paper's {paper_name(variant)}")
        return lambda facts: of_paper(facts, variant=variant), *words
    return law, _LAW, "the law's T"


def paper_name(variant: str) -> str:
    """T* of a variant, as the paper writes it."""
    return "T*" if variant == "base" else f"T*_{variant}"


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with parts of one's own by the function's name; two of a name keep their files."""
    names = [name for name in OWN if name in frame]
    parts = {v for name in names for v in frame[name].dropna().unique() if ".py:" in str(v)}
    short = {part: str(part).rpartition(":")[2] for part in parts}
    told = {part: name for part, name in short.items() if [*short.values()].count(name) == 1}
    return frame.assign(**{name: frame[name].replace(told) for name in names}) if told else frame


def _setting(
    every: list[Mapping[str, Any]], specs: Iterable[Any]
) -> Callable[[Mapping[str, Any]], str]:
    """Facts → how it was trained: optimizer, rate, length, own loss, and what else differs."""
    names = [name for name in FACTS if name not in (*_SHOWN, "source")]
    places: dict[tuple[Any, Any], list[Mapping[str, Any]]] = {}
    for facts in every:
        places.setdefault((facts.get("dataset"), facts.get("model")), []).append(facts)
    kept = {"optimizer", "lr", "epochs", "steps"}
    for name in names:
        if any(len({facts.get(name) for facts in place}) > 1 for place in places.values()):
            kept.add(name)
    # The length is said as it was asked for: steps give each data set its own epochs. The other
    # number is said too if the asked one does not tell conditions apart, or is not known.
    asked = [json_object(text).get("steps") for text in pd.unique(pd.Series(specs, dtype=object))]
    length, spare = ("steps", "epochs") if asked and all(asked) else ("epochs", "steps")
    told = {(without(facts, spare), facts.get(spare)) for facts in every}
    if all(facts.get(length) for facts in every) and len(told) == len({f for f, _ in told}):
        kept.discard(spare)

    def setting(facts: Mapping[str, Any]) -> str:
        own = {"loss"} if facts.get("loss") != "cross-entropy" else set()
        told = (say(name, facts.get(name)) for name in names if name in kept | own)
        return ", ".join(filter(None, told))

    return setting


def say(name: str, value: Any) -> str:
    """A fact in words, by the table of fields: "16 px", "M = 64", "lr 0.1"; empty without one."""
    shown, about = text(value), TABLE[name].metadata if name in TABLE else {}
    if not shown or name in _BARE:
        return shown
    if unit := about.get("unit"):
        return f"{shown} {unit}"
    label = about.get("label") or name.replace("_", " ")
    return f"{label} = {shown}" if len(label) == 1 else f"{label} {shown}"


def people(value: float) -> str:
    """A number as people write it: 18,000, not 1.8e+04.

    >>> people(18000), people(0.1), people(2048.0), people(0.00005)
    ('18,000', '0.1', '2,048', '5e-05')
    """
    whole = abs(value) >= 1000 or value == int(value)
    return f"{value:,.0f}" if whole else f"{value:.4g}"


def text(value: Any) -> str:
    """A value for a title: short numbers, nothing if it is missing; what is hidden, escaped."""
    if value is None or value != value:
        return ""
    return people(value) if isinstance(value, int | float) else printable(value)
