"""Check the formula on your own model: a short sweep over T, and where its accuracy peaks.

This is what a sceptic runs first. Every temperature gets the same few steps, seeds and data; the
peak is chosen on validation data, and the accuracies are measured on test data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from torch import nn

from tstar.advice import Recommendation, recommend
from tstar.curves import Condition, Curve, Judged, judge
from tstar.data.task import Task, as_task
from tstar.errors import TstarError
from tstar.methods import get
from tstar.numbers import whole
from tstar.surgery.finding import resolve_head
from tstar.training import Config, Result
from tstar.training.loop import length
from tstar.training.optim import make_optimizer
from tstar.training.parts import make_parts
from tstar.training.running import run
from tstar.training.timing import FORWARD, step_seconds

_LEAST_STEPS = 20
_MOST = 6  # temperatures of the grid that is made here


@dataclass(frozen=True)
class Row:
    """One temperature: its mean accuracies, their standard error over the seeds, and how many ran.

    ``temperature`` is ``None`` for the model as it is (T = 1, no norm). Diverged runs count as 1/K.
    """

    temperature: float | None
    val_accuracy: float
    test_accuracy: float
    error: float | None
    runs: int
    diverged: int


@dataclass(frozen=True)
class Check:
    """What a check found: ``rows`` (the plain model first), the peak, and what the formula says.

    ``judged`` is the row nearest to the formula's T (in ln T), as :mod:`tstar.curves` judges any temperature.
    """

    rows: tuple[Row, ...]
    judged: Judged
    advice: Recommendation
    steps: int
    epochs: float
    seconds: float

    @property
    def plain(self) -> Row:
        return self.rows[0]

    @property
    def best(self) -> Row:
        """The temperature with the highest validation accuracy, the lowest of equals."""
        return self._at(self.judged.best_temperature)

    @property
    def formula(self) -> Row:
        """The row nearest to the formula's temperature (in ln T)."""
        return self._at(self.judged.temperature)

    def _at(self, temperature: float) -> Row:
        return next(row for row in self.rows if row.temperature == temperature)

    @property
    def sentence(self) -> str:
        """What the table says, in one sentence."""
        best, ours, plain = self.best, self.formula, self.plain
        gap, gain = self.judged.regret, self.judged.gain or 0.0
        noise = math.hypot(ours.error or 0, best.error or 0)
        how = (
            f"which is where accuracy peaks in this check ({100 * ours.test_accuracy:.1f} % on test data)"
            if best == ours
            else f"{100 * ours.test_accuracy:.1f} % on test data; validation accuracy peaks at "
            f"T = {best.temperature:.3g}, which gives {100 * best.test_accuracy:.1f} % "
            f"({gap:+.1f} points{', within the noise' if abs(gap) <= 200 * noise else ''})"
        )
        return (
            f"For this training the formula points at T = {self.advice.temperature:.3g}, {how}; the model as it is gives "
            f"{100 * plain.test_accuracy:.1f} % (formula {gain:+.1f} points). "
            f"{self.steps} steps ({self.epochs:.3g} epochs) and {plain.runs} seed{'s'[: plain.runs > 1]} each: a short look; "
            "longer training may peak at a higher T: ask tstar.recommend with the steps of yours."
        )

    def __str__(self) -> str:
        lines = [f"{'T':>8} {'val %':>8} {'test %':>8} {'±':>6} {'n':>3}"]
        for row in self.rows:
            mark = " ← formula" if row is self.formula else ""
            mark += " ← peak" if row is self.best else ""
            name = "plain" if row.temperature is None else f"{row.temperature:.3g}"
            error = "–" if row.error is None else f"{100 * row.error:.2f}"
            gone = f" ({row.diverged} diverged)" if row.diverged else ""
            lines.append(
                f"{name:>8} {100 * row.val_accuracy:>8.2f} {100 * row.test_accuracy:>8.2f} "
                f"{error:>6} {row.runs:>3}{gone}{mark}"
            )
        return "\n".join([*lines, "", self.sentence])

    def to_dict(self) -> dict[str, Any]:
        """The check as plain JSON types."""
        return {
            "rows": [vars(row) for row in self.rows],
            "formula_temperature": self.advice.temperature,
            "best_temperature": self.best.temperature,
            "advice": self.advice.to_dict(),
            "steps": self.steps,
            "epochs": self.epochs,
            "seconds": self.seconds,
            "sentence": self.sentence,
        }

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw test accuracy against T, with the formula's T, into an SVG, PDF or PNG file."""
        from tstar.checking.figure import draw

        draw(self, Path(path))


def check(
    make_model: Callable[[], nn.Module],
    data: Any,
    *,
    temperatures: Sequence[float] | None = None,
    budget: float = 120.0,
    seeds: int = 2,
    config: Config | None = None,
    csg: float | None = None,
    head: str | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
) -> Check:
    """Train briefly at several temperatures and compare the peak with the formula for such a training.

    Args:
        make_model: makes a fresh model; called under a seed for each training, so that all
            temperatures of a seed start from the same weights.
        data: in any form that :func:`tstar.csg` takes: a name or path, arrays, a ``Dataset``, a
            ``DataLoader``, ``{"train": …, "test": …}``. Of large data sets 20,000 samples are read.
        temperatures: the grid; by default (1 and) the formula's T times ¼, ½, 1, 2, 4.
        budget: seconds for the whole check; sets the number of steps of each training.
        seeds: trainings for each temperature.
        config: the protocol; its ``epochs`` are the most that is trained, whatever the budget.
        csg: the data's difficulty where it is known, so that the formula can use it.
        head: the output layer's path, where the model has several.
        progress: called with the trainings done, their total, and what is next.
    """
    started = time.perf_counter()
    task = as_task(data)
    config = config or Config()
    config = replace(
        config,
        augment=config.augment and task.raw,
        val_fraction=config.val_fraction or 0.1,
    )
    seeds = whole("seeds", seeds, least=1)
    model = _make(make_model, 0)
    parts = make_parts(task, config, 0)  # type: ignore[arg-type]
    example = parts.ready(parts.x[:2])
    found = resolve_head(model, head, example)
    if found.num_classes != task.num_classes:
        raise TstarError(
            f"The model must have one output for each of the data's {task.num_classes} classes, got "
            f"{found.num_classes}; change make_model."
        )
    given = None if temperatures is None else _given(temperatures)
    runs = seeds * (1 + (_MOST if given is None else len(given)))
    seconds = budget - time.perf_counter() + started
    config = replace(config, steps=_steps(model, parts, config, seconds, runs))
    advice = recommend(
        model,
        csg=csg,
        num_classes=task.num_classes,
        optimizer=make_optimizer(model, config),
        steps=config.steps,
        head=found,
        example_input=example,
    )
    grid = _around(advice.temperature) if given is None else given
    total = seeds * (len(grid) + 1)

    chance = 1 / task.num_classes  # a run that diverges guesses
    results: dict[float | None, list[Result]] = {T: [] for T in (None, *grid)}
    for seed in range(seeds):
        parts = make_parts(task, config, seed)  # type: ignore[arg-type]
        for T, found_here in results.items():
            done = sum(map(len, results.values()))
            progress(done, total, "plain" if T is None else f"T = {T:.3g}")
            trained = run(
                get("default") if T is None else get("fixed", temperature=T, norm="batch"),
                lambda seed=seed: _make(make_model, seed),  # type: ignore[misc]
                parts,
                config,
                num_classes=task.num_classes,
                seed=seed,
                head=found.path,
            )
            found_here.append(trained.result)
    progress(total, total, "")
    curves = (_curve("none", [None], results, chance), _curve("batch", grid, results, chance))
    nearest = min(grid, key=lambda T: abs(math.log(T / advice.temperature)))
    judged = judge(Condition({}, curves, {}), nearest)
    assert judged is not None
    return Check(
        rows=tuple(_row(T, runs, chance) for T, runs in results.items()),
        judged=judged,
        advice=advice,
        steps=config.steps or 0,
        epochs=(config.steps or 0) * config.batch_size / len(parts.y),
        seconds=time.perf_counter() - started,
    )


def _curve(
    norm: str,
    grid: Sequence[float | None],
    results: Mapping[float | None, Sequence[Result]],
    chance: float,
) -> Curve:
    """The results as a curve; the plain model is the one at T = 1 without a norm."""
    val, test = np.array([_accuracies(results[T], chance) for T in grid]).transpose(1, 2, 0)
    temperatures = np.array([1.0 if T is None else T for T in grid])
    ran = np.ones(val.shape, dtype=bool)
    return Curve({"norm": norm}, temperatures, tuple(range(len(val))), val, test, ran)


def _accuracies(runs: Sequence[Result], chance: float) -> tuple[list[float], list[float]]:
    """Validation and test accuracy of each run; one that diverged guesses."""
    val = [chance if run.val_accuracy is None else run.val_accuracy for run in runs]
    test = [chance if run.test_accuracy is None else run.test_accuracy for run in runs]
    return val, test


def _make(make_model: Callable[[], nn.Module], seed: int) -> nn.Module:
    """A fresh model from a seed; the caller's random generators stay as they are."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make_model()
    if not isinstance(model, nn.Module):
        raise TstarError(
            f"make_model() must return a torch.nn.Module, got {type(model).__name__}; "
            "pass a function that makes a fresh model, such as lambda: MyModel()."
        )
    return model


def _around(formula: float) -> list[float]:
    around = [formula * factor for factor in (0.25, 0.5, 1, 2, 4)]
    # T = 1 as well, unless it is as good as there already.
    return around if any(0.75 < T < 1.33 for T in around) else sorted([1.0, *around])


def _given(temperatures: Sequence[float]) -> list[float]:
    grid = sorted({float(T) for T in temperatures})
    if not grid or not all(math.isfinite(T) and T > 0 for T in grid):
        raise TstarError(
            f"temperatures must be positive numbers, at least one, got {temperatures!r}."
        )
    return grid


def _steps(model: nn.Module, parts: Any, config: Config, seconds: float, runs: int) -> int:
    """How many steps each training can have."""
    step = step_seconds(model, parts, config)
    most, _ = length(len(parts.y), config)
    per_epoch = math.ceil(len(parts.y) / config.batch_size)
    forward = step * FORWARD / config.batch_size
    # Validation after each epoch adds to every step; the final measurement is paid once.
    step += forward * len(parts.y_val) / per_epoch
    final = forward * (len(parts.y_test) + len(parts.y_val))
    steps = int((seconds / runs - final) / step)
    if steps < _LEAST_STEPS and most >= _LEAST_STEPS:
        needed = runs * (final + step * _LEAST_STEPS)
        raise TstarError(
            f"budget must allow at least {_LEAST_STEPS} steps for each of {runs} trainings, got room for "
            f"{max(steps, 0)}; give budget={math.ceil(needed * 1.2)}, fewer temperatures, or seeds=1."
        )
    return min(steps, most)


def _row(T: float | None, runs: Sequence[Result], chance: float) -> Row:
    val, test = _accuracies(runs, chance)
    error = stdev(test) / math.sqrt(len(test)) if len(test) > 1 else None
    gone = sum(run.status == "diverged" for run in runs)
    return Row(T, mean(val), mean(test), error, len(runs), gone)


__all__ = ["Check", "Row", "Task", "check"]
