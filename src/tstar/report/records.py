"""From a store to records: what every figure, table and page of a report is made of. No drawing here."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tstar.curves import FACTS, Condition, Curve, Judged, conditions, judge, read
from tstar.curves.conditions import order
from tstar.curves.conditions import without as without_facts
from tstar.curves.reading import Metric, ordinary
from tstar.errors import TstarError, unknown
from tstar.evidence.regret import advised, number
from tstar.formula.coefficients import Coefficients, as_coefficients, get
from tstar.formula.training import SCENARIOS
from tstar.sweep.columns import FINAL
from tstar.sweep.spec import OWN
from tstar.text import printable

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
# Facts that a panel shows in its title or on its axes, or that follow from the data set.
_SHOWN = ("dataset", "domain", "num_classes", "csg", "model", "num_features", "norm", "method")


@dataclass(frozen=True)
class Sweep:
    """One curve of accuracy against T, of one condition under one norm and backbone.

    Attributes:
        curve: its facts, temperatures and accuracies, as :mod:`tstar.curves` groups them.
        condition: the condition that it belongs to, with its baselines.
        metric: the accuracy that is reported.
        recommended: the law's T, or ``None`` where the facts do not allow one.
        setting: how it was trained, in words: optimizer, rate and length, and what else differs between the conditions.
    """

    curve: Curve
    condition: Condition = field(compare=False)
    metric: Metric
    recommended: float | None
    setting: str = ""

    @property
    def facts(self) -> Mapping[str, Any]:
        return self.curve.facts

    @property
    def temperatures(self) -> tuple[float, ...]:
        return tuple(self.curve.temperatures.tolist())

    @property
    def best(self) -> int:
        """The index of the oracle's T, the lowest where several tie."""
        found = self.index_of(self.curve.matched().best)
        assert found is not None
        return found

    @property
    def ranking(self) -> tuple[int, ...]:
        """The indices of the temperatures by the accuracy that the oracle chooses by, its own T first."""
        curve, best = self.curve.matched(), self.best
        means = curve.means(curve.chosen_on)
        order = sorted(range(len(means)), key=lambda i: (-means[i], i))
        found = [self.index_of(float(curve.temperatures[i])) for i in order]
        return (best, *(i for i in found if i is not None and i != best))

    @property
    def title(self) -> str:
        """Data set, model and setting, without M and norm."""
        parts = [text(self.facts.get("dataset")), text(self.facts.get("model")), self.setting]
        return " · ".join(part for part in parts if part)

    def seen(self, index: int) -> Array:
        """The accuracy of each seed that was run at this temperature."""
        return self.curve.seen(index, self.metric)

    def mean(self, index: int) -> float:
        return float(self.seen(index).mean())

    def standard_error(self, index: int) -> float | None:
        """Of the mean over seeds; ``None`` with a single one."""
        values = self.seen(index)
        return None if len(values) < 2 else float(np.std(values, ddof=1)) / len(values) ** 0.5

    def at(self, T: float) -> float:
        """Mean accuracy at any T, linear in ln T between the means."""
        return self.curve.at(T, self.metric)

    def judged(self, T: float) -> Judged:
        """A temperature judged on this curve."""
        norm, backbone = (str(self.facts.get(n) or d) for n, d in _TREATMENT)
        found = judge(self.condition, T, norm=norm, backbone=backbone, on=self.metric)
        assert found is not None
        return found

    def index_of(self, T: float) -> int | None:
        """Where the grid has this T, if it does."""
        return self.curve.index_of(T)


_TREATMENT = (("norm", "batch"), ("backbone", "as-is"))


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
        name, checksum: the file's name, and the SHA-256 of its bytes. path: as it was given.
        frame: one row per run that is no longer under way, plain types, ``None`` or NaN for missing.
        metric: the accuracy that is reported; ``chosen_on``: the one that chose the best T.
        formula: in words, which law gives the T that is judged. options: the command-line options that say the same.
        sweeps: the grids of fixed temperatures. conditions: all of them, with their methods.
    """

    name: str
    checksum: str
    frame: pd.DataFrame
    metric: Metric
    chosen_on: Metric
    formula: str
    options: tuple[str, ...]
    sweeps: tuple[Sweep, ...] = field(repr=False)
    conditions: tuple[Condition, ...] = field(repr=False)
    path: str

    def command(self, *words: str) -> str:
        """A command line about this store that gives the same numbers."""
        if words[0] != "paper":
            return shlex.join(["tstar", *words, self.path, *self.options])
        pairs = zip(self.options[::2], self.options[1::2], strict=True)
        kept = [
            word for pair in pairs if pair[0] in ("--metric", "--where", "--study") for word in pair
        ]
        return shlex.join(["tstar", *words, "--runs", self.path, *kept])

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
    where: str | None = None,
    study: str | None = None,
) -> Records:
    """Read a store (``.db``, ``.parquet`` or ``.csv``) for a report.

    Args:
        metric: the accuracy to report, ``"test"`` as in the paper, or ``"val"``.
        variant: of the paper, to be judged in place of tstar's law.
        coefficients: a set of your own in place of the paper's.
        where: a condition that the runs must meet, such as ``'lr == 0.1'``.
        study: the file of a study, whose runs alone are taken.
    """
    if metric not in ("val", "test"):
        raise unknown("metric", metric, ("val", "test"))
    file = Path(path)
    frame = ordinary(read(file, where, study))
    if "status" in frame.columns:
        frame = frame[frame["status"] != "running"].reset_index(drop=True)
    if frame.empty:
        raise TstarError(
            f"No run in {str(path)!r} has ended yet, so that there is nothing to report."
        )
    _check_scenarios(frame, str(path))
    recommend, formula = _recommender(variant, coefficients)
    reported: Metric = "test" if metric == "test" else "val"
    sweeps, every = _sweeps(frame, reported, recommend)
    validated = all(sweep.curve.chosen_on == "val" for sweep in sweeps)
    options = ["--metric", reported]
    said = {
        "--variant": variant,
        "--coefficients": coefficients,
        "--where": where,
        "--study": study,
    }
    for option, given in said.items():
        if isinstance(given, str | os.PathLike):
            options += [option, os.fspath(given)]
    return Records(
        file.name,
        _checksum(file),
        frame,
        reported,
        "val" if validated and sweeps else reported,
        formula,
        tuple(options),
        sweeps,
        every,
        os.fspath(path),
    )


def _check_scenarios(frame: pd.DataFrame, path: str) -> None:
    """A report must know what kind of training it judges."""
    for index, name in frame["scenario"].items() if "scenario" in frame.columns else ():
        if name is not None and name not in SCENARIOS:
            run = frame["key"][index] if "key" in frame.columns else f"row {index}"
            raise TstarError(
                f"scenario must be {' or '.join(SCENARIOS)} in every run, got {name!r} in run {run} of {path!r}."
            )


def _checksum(file: Path) -> str:
    """SHA-256 of a file, a piece at a time: stores with learning curves are large."""
    found = hashlib.sha256()
    with file.open("rb") as source:
        while piece := source.read(1 << 22):
            found.update(piece)
    return found.hexdigest()


def _sweeps(
    frame: pd.DataFrame, metric: Metric, recommend: Callable[[Mapping[str, Any]], float | None]
) -> tuple[tuple[Sweep, ...], tuple[Condition, ...]]:
    if "status" in frame.columns and not frame["status"].isin(FINAL).any():
        return (), ()
    every = tuple(conditions(frame))
    found = [
        (curve, condition)
        for condition in every
        for curve in condition.curves
        if curve.facts.get("method", "fixed") == "fixed"
    ]
    settings = _settings([curve for curve, _ in found])
    sweeps = [
        Sweep(curve, condition, metric, recommend(condition.facts), setting)
        for (curve, condition), setting in zip(found, settings, strict=True)
    ]
    for sweep in sweeps:
        sweep.curve.values(metric)  # or an error that names the runs without
    return tuple(sorted(sweeps, key=lambda sweep: order(sweep.facts))), every


_LENGTHS = ("epochs", "steps")
# How a fact is said in a title.
_SAID = {
    **{"size": "{} px", "num_train": "{} samples", "epochs": "{} epochs", "steps": "{} steps"},
    **{
        "num_classes": "K = {}",
        "optimizer": "{}",
        "scenario": "{}",
        "schedule": "{}",
        "train_samples": "of {} samples",
    },
}


def said(name: str, value: Any) -> str:
    """A fact in words: "16 px", "lr 0.1"."""
    return _SAID.get(name, f"{name.replace('_', ' ')} {{}}").format(text(value))


def _settings(found: Sequence[Curve]) -> list[str]:
    """For each condition, how it was trained: optimizer, rate and length, and what else differs between conditions.

    All conditions say the same facts, so that figures and tables tell what is alike from what is not. A fact that only
    follows from the data set is left out. Parts of your own are told by their names; the hash of their source is
    there where one part has several versions.
    """
    names = [name for name in (*FACTS, "backbone") if name not in _SHOWN]
    places: dict[tuple[Any, Any], dict[str, set[Any]]] = {}
    for c in found:
        place = places.setdefault((c.facts.get("dataset"), c.facts.get("model")), {})
        for name in names:
            place.setdefault(name, set()).add(c.facts.get(name))
    differ = {n for n in names if any(len(place[n]) > 1 for place in places.values())}
    kept = (differ | {"optimizer", "lr", *_LENGTHS}) - {_spare_length(found)}
    versions: dict[tuple[Any, ...], set[Any]] = {}
    for c in found:
        versions.setdefault(_parts(c), set()).add(c.facts.get("source"))
    return [
        ", ".join(
            said(name, c.facts[name])
            for name in names
            if (len(versions[_parts(c)]) > 1 if name == "source" else name in kept)
            and c.facts.get(name) is not None
        )
        for c in found
    ]


def _spare_length(found: Sequence[Curve]) -> str | None:
    """Epochs or steps, whichever has more values, where the other one says how long every training was."""
    counts = {name: len({c.facts.get(name) for c in found}) for name in _LENGTHS}
    spare = max(_LENGTHS, key=lambda name: counts[name])
    (other,) = set(_LENGTHS) - {spare}
    known = all(c.facts.get(other) is not None for c in found)
    told = {(without_facts(c.facts, spare), c.facts.get(spare)) for c in found}
    return spare if known and len(told) == len({facts for facts, _ in told}) else None


def _parts(curve: Curve) -> tuple[Any, ...]:
    """The names of what may be a part of your own."""
    return tuple(curve.facts.get(name) for name in OWN)


def _recommender(
    variant: str | None, coefficients: Coefficients | str | os.PathLike[str] | None
) -> tuple[Callable[[Mapping[str, Any]], float | None], str]:
    """Facts → T, and which formula that is, in words."""
    if coefficients is not None:
        chosen = as_coefficients(coefficients)
        return lambda facts: advised(facts, coefficients=chosen), f"coefficient set {chosen.name!r}"
    if variant is not None:
        get(variant)  # an unknown name is refused here, not later
        return lambda facts: advised(facts, variant=variant), f"the paper's variant {variant!r}"
    return advised, "tstar's own, at each run's own learning rate"


def without(sweep: Sweep, *names: str) -> tuple[Any, ...]:
    """All facts but some, to group by."""
    return without_facts(sweep.facts, *names)


def people(value: float) -> str:
    """A number as people write it: 18,000, not 1.8e+04.

    >>> people(18000), people(0.1), people(2048.0), people(0.00005)
    ('18,000', '0.1', '2,048', '5e-05')
    """
    whole = abs(value) >= 1000 or value == int(value)
    return f"{value:,.0f}" if whole else f"{value:.4g}"


def text(value: Any) -> str:
    """A value for a title: short numbers, nothing where it is missing; what cannot be seen, escaped."""
    if value is None or value != value:
        return ""
    return people(value) if isinstance(value, int | float) else printable(value)
