"""From runs to rows: means, spreads, and a paired test against the baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from tstar.errors import TstarError, require

if TYPE_CHECKING:
    from tstar.methods.calibration import Reliability


@dataclass(frozen=True)
class Run:
    """One method on one seed. Accuracies are shares in [0, 1], 1/K of a diverged run, ``None`` of a failed one.

    ``temperature`` is T at the end, ``None`` where there is no single one; ``norm`` the one before the output layer
    that the method inserted (``"none"``: nothing), ``lr_factor`` what it multiplied the learning rate by, and
    ``left`` whether it decided to leave the model as it is. ``reliability`` is the diagram's data on the test set,
    after temperature scaling where the method is that.
    """

    method: str
    seed: int
    status: str
    test_accuracy: float | None = None
    val_accuracy: float | None = None
    nll: float | None = None
    ece: float | None = None
    trainings: int = 1
    seconds: float = 0.0
    temperature: float | None = None
    norm: str = "none"
    lr_factor: float = 1.0
    left: bool = False
    error: str = ""
    # Not compared: the means of empty bins are NaN, which equals nothing.
    reliability: Reliability | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Paired:
    """A method minus the baseline over the seeds that both finished, in points of accuracy.

    ``low`` and ``high`` bound the mean difference with 95 % confidence (Student's t). ``p_t`` is
    the paired t-test's, ``p_wilcoxon`` the signed-rank test's, ``p_holm`` the t-test's after
    Holm's correction for the number of methods tested. ``None`` where n is too small to say.
    """

    n: int
    difference: float
    low: float | None = None
    high: float | None = None
    p_t: float | None = None
    p_wilcoxon: float | None = None
    p_holm: float | None = None

    @property
    def verdict(self) -> str:
        """``"better"`` or ``"worse"`` at 5 % after Holm's correction and n >= 3, else ``"no evidence"``."""
        if self.n < 3 or self.p_holm is None or self.p_holm >= 0.05:
            return "no evidence"
        return "better" if self.difference > 0 else "worse"


@dataclass(frozen=True)
class Row:
    """A method's line in the table. Accuracies in percent; ``sd`` is the sample's (n − 1).

    ``temperature`` is the mean, ``norm``, ``lr_factor`` and ``left`` are as in a run (all of them, for ``left``).
    ``rank`` is 1 for the best mean, 2 for the second, ``None`` for the others and for a method with
    a failed run: leaving out its failures would flatter it.
    """

    method: str
    n: int
    failed: int
    diverged: int
    mean: float | None
    sd: float | None
    val_mean: float | None
    nll: float | None
    ece: float | None
    trainings: int
    seconds: float
    temperature: float | None = None
    norm: str = "none"
    lr_factor: float = 1.0
    left: bool = False
    rank: int | None = None
    paired: Paired | None = None
    errors: tuple[str, ...] = ()


def summarize(runs: Sequence[Run], baseline: str = "default") -> list[Row]:
    """One row per method, in the order in which they ran."""
    by_method: dict[str, list[Run]] = {}
    for run in runs:
        by_method.setdefault(run.method, []).append(run)
    rows = [_row(name, group) for name, group in by_method.items()]
    return _tested(_ranked(rows), by_method, baseline)


def paired(first: Sequence[float], second: Sequence[float]) -> Paired:
    """``first`` − ``second``, pair by pair: mean, 95 % interval, paired t and Wilcoxon tests (scipy)."""
    if len(first) != len(second) or not first:
        raise TstarError(
            f"A paired test needs as many values on either side, got {len(first)} and {len(second)}."
        )
    stats = require("scipy.stats", "compare")
    differences = [a - b for a, b in zip(first, second, strict=True)]
    n, mean = len(differences), fmean(differences)
    if n < 2:
        return Paired(n, mean)
    spread = stdev(differences)
    if spread <= 1e-12 * max(1.0, abs(mean)):
        # Every pair differs by the same amount: no noise to test against, and t is 0/0 or infinite.
        same = abs(mean) <= 1e-12
        p = 1.0 if same else None
        return Paired(n, mean, mean, mean, p, p)
    half = float(stats.t.ppf(0.975, n - 1)) * spread / math.sqrt(n)
    p_t = float(stats.ttest_rel(first, second).pvalue)
    p_wilcoxon = float(stats.wilcoxon(differences).pvalue)
    return Paired(n, mean, mean - half, mean + half, p_t, p_wilcoxon)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down correction: p_(i)·(m − i), made increasing, at most 1."""
    adjusted, highest = {}, 0.0
    for i, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        highest = max(highest, min(1.0, p * (len(p_values) - i)))
        adjusted[name] = highest
    return adjusted


def _row(name: str, runs: Sequence[Run]) -> Row:
    done = [run for run in runs if run.test_accuracy is not None]
    scores = [100 * (run.test_accuracy or 0.0) for run in done]
    return Row(
        method=name,
        n=len(done),
        failed=len(runs) - len(done),
        diverged=sum(run.status == "diverged" for run in done),
        mean=fmean(scores) if scores else None,
        sd=stdev(scores) if len(scores) > 1 else None,
        val_mean=_mean([run.val_accuracy for run in done], 100),
        nll=_mean([run.nll for run in done]),
        ece=_mean([run.ece for run in done]),
        trainings=max(run.trainings for run in runs),
        seconds=fmean([run.seconds for run in runs]),
        temperature=_mean([run.temperature for run in done]),
        norm=done[0].norm if done else "none",
        lr_factor=done[0].lr_factor if done else 1.0,
        left=bool(done) and all(run.left for run in done),
        errors=tuple(sorted({run.error for run in runs if run.error})),
    )


def _mean(values: Sequence[float | None], factor: float = 1.0) -> float | None:
    present = [value for value in values if value is not None]
    return factor * fmean(present) if present else None


def _ranked(rows: Sequence[Row]) -> list[Row]:
    means = {round(row.mean, 9) for row in rows if row.mean is not None and not row.failed}
    order = sorted(means, reverse=True)[:2]

    def rank(row: Row) -> int | None:
        if row.mean is None or row.failed or round(row.mean, 9) not in order:
            return None
        return order.index(round(row.mean, 9)) + 1

    return [replace(row, rank=rank(row)) for row in rows]


def _tested(
    rows: Sequence[Row], by_method: Mapping[str, Sequence[Run]], baseline: str
) -> list[Row]:
    def scores(name: str) -> dict[int, float]:
        return {
            run.seed: 100 * run.test_accuracy
            for run in by_method.get(name, ())
            if run.test_accuracy is not None
        }

    reference, tests = scores(baseline), {}
    for row in rows:
        mine = scores(row.method)
        seeds = sorted(mine.keys() & reference.keys())
        if row.method != baseline and seeds:
            tests[row.method] = paired([mine[s] for s in seeds], [reference[s] for s in seeds])
    corrected = holm({name: test.p_t for name, test in tests.items() if test.p_t is not None})
    return [
        replace(
            row,
            paired=None
            if row.method not in tests
            else replace(tests[row.method], p_holm=corrected.get(row.method)),
        )
        for row in rows
    ]
