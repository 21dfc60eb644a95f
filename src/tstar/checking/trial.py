"""Check the formula on your own model: a short sweep over T, and where its accuracy peaks.

This is what a sceptic runs first. Every temperature gets the same few steps, seeds and data; the
peak is chosen on validation data, and the accuracies are measured on test data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from tstar import own
from tstar.advice import Recommendation, recommend
from tstar.checking.noise import FEW, may_be_noise, within_noise
from tstar.curves import Condition, Curve, Judged, judge
from tstar.data.task import as_task
from tstar.errors import TstarError, shown, unknown
from tstar.formula import similar
from tstar.formula.equation import explain
from tstar.formula.training import Keywords, Training
from tstar.methods import get
from tstar.numbers import positive, whole
from tstar.surgery.finding import Head, check_head, resolve_head
from tstar.surgery.probing import ENDS
from tstar.training import Config, Result
from tstar.training.config import OPTIMIZERS
from tstar.training.loop import length
from tstar.training.optim import make_optimizer
from tstar.training.parts import make_parts
from tstar.training.running import run
from tstar.training.timing import FORWARD, step_seconds

if TYPE_CHECKING:
    from typing_extensions import Unpack

# T with a BatchNorm (None: plain), and a factor on the learning rate.
Recipe = tuple[float | None, float]
_LEAST_STEPS = 20
# What may be said in keywords, as to recommend; for all else there is the Config.
_TRAINING = (
    "optimizer", "lr", "momentum", "weight_decay", "batch_size", "steps", "epochs", "label_smoothing",
)  # fmt: skip
_MOST = 6  # temperatures of the grid that is made here


@dataclass(frozen=True)
class Row:
    """One recipe: its mean accuracies, their standard error over the seeds, and how many ran.

    ``temperature`` is ``None`` for the model as it is (T = 1, no norm), ``rate`` what the learning rate was multiplied by.
    Diverged runs count as 1/K.
    """

    temperature: float | None
    val_accuracy: float
    test_accuracy: float
    error: float | None
    runs: int
    diverged: int
    rate: float = 1.0

    def __str__(self) -> str:
        name = "plain" if self.temperature is None else f"{self.temperature:.3g}"
        return name if self.rate == 1 else f"{name}, rate × {self.rate:g}"


@dataclass(frozen=True)
class Check:
    """What a check found: ``rows`` (the plain model first), the peak, what the formula says, and the advice.

    ``judged`` is the row nearest to the formula's T at the given rate (in ln T), as :mod:`tstar.curves` judges any temperature. The
    last row is the recipe that the evidence favors for this optimizer, where that has another rate. Accuracies are of
    ``val_samples``, others for each seed, and of ``test_samples``.
    """

    rows: tuple[Row, ...]
    judged: Judged
    temperature: float
    advice: Recommendation
    steps: int
    epochs: float
    seconds: float
    val_samples: int
    test_samples: int

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

    @property
    def advised(self) -> Row:
        """The recipe that the evidence favors for this optimizer, tried whether or not it was advised here."""
        return self.rows[-1] if self.rows[-1].rate != 1 else self.formula

    def _at(self, temperature: float) -> Row:
        return next(row for row in self.rows if row.temperature == temperature and row.rate == 1)

    @property
    def told_apart(self) -> bool:
        """Whether validation accuracy differs between the temperatures by more than chance."""
        found = [row.val_accuracy for row in self.rows[1:] if row.rate == 1]
        pairs = max(1, math.comb(len(found), 2))
        return not within_noise(
            max(found), min(found), self.val_samples * self.plain.runs, pairs=pairs
        )

    @property
    def sentence(self) -> str:
        """What the table says, in a few words."""
        best, ours, plain, told = self.best, self.formula, self.plain, self.advised
        tried = f"{ours.temperature:.3g}"
        nearest = "" if tried == f"{self.temperature:.3g}" else f" (nearest in this check: {tried})"
        parts = [
            f"Your model as it is gives {_percent(plain)} on test data. At your rate the formula points at T = "
            f"{self.temperature:.3g}{nearest}: {self._next_to(ours, plain, 'your model')}."
        ]
        if not self.told_apart:
            if sum(row.rate == 1 for row in self.rows) > 2:
                parts.append(
                    f"Validation accuracy, on {self.val_samples} samples, does not tell the temperatures apart."
                )
        elif best is ours:
            parts.append("Validation accuracy peaks there.")
        else:
            parts.append(
                f"Validation accuracy peaks at T = {best.temperature:.3g}: {self._next_to(best, ours, 'that')}."
            )
        if told is not ours:
            parts.append(
                f"With BatchNorm, T = {told.temperature:.3g} and {told.rate:g} times the rate it is "
                f"{self._next_to(told, plain, 'your model')}."
            )
        if self.test_samples < FEW:
            parts.append(
                f"The test part has {self.test_samples} samples only, on which even {may_be_noise(self.test_samples):.0f} points "
                "may be noise: check with more data."
            )
        parts.append(
            f"{self.steps} steps ({self.epochs:.3g} epochs) and {plain.runs} seed{'s'[: plain.runs > 1]} each: a short look. "
            "Longer training may peak at a higher T; ask tstar.recommend with your own number of steps."
        )
        return " ".join(parts)

    def _next_to(self, row: Row, other: Row, what: str) -> str:
        """A row's test accuracy and its difference from another's, in words."""
        points = 100 * (row.test_accuracy - other.test_accuracy)
        size = f"{abs(points):.1f}"
        if size == "0.0":
            return f"{_percent(row)}, the same as {what}"
        noise = within_noise(
            row.test_accuracy,
            other.test_accuracy,
            self.test_samples,
            seeds_error=math.hypot(row.error or 0, other.error or 0),
        )
        return (
            f"{_percent(row)}, {size} points {'above' if points > 0 else 'below'} {what}"
            f"{', within the noise' if noise else ''}"
        )

    def __str__(self) -> str:
        lines = [f"{'T':>14} {'val %':>8} {'test %':>8} {'±':>6} {'n':>3}"]
        for row in self.rows:
            mark = " ← formula" if row is self.formula else ""
            mark += " ← peak" if row is self.best and self.told_apart else ""
            mark += " ← advised" if row is self.advised else ""
            error = "–" if row.error is None else f"{100 * row.error:.2f}"
            gone = f" ({row.diverged} diverged)" if row.diverged else ""
            lines.append(
                f"{row!s:>14} {100 * row.val_accuracy:>8.2f} {100 * row.test_accuracy:>8.2f} "
                f"{error:>6} {row.runs:>3}{gone}{mark}"
            )
        return "\n".join([*lines, "", self.sentence])

    def to_dict(self) -> dict[str, Any]:
        """The check as plain JSON types."""
        return {
            "rows": [vars(row) for row in self.rows],
            "formula_temperature": self.temperature,
            "best_temperature": self.best.temperature,
            "advice": self.advice.to_dict(),
            "steps": self.steps,
            "epochs": self.epochs,
            "seconds": self.seconds,
            "val_samples": self.val_samples,
            "test_samples": self.test_samples,
            "told_apart": self.told_apart,
            "sentence": self.sentence,
        }

    def plot(self, path: str | PathLike[str]) -> None:
        """Draw test accuracy against T, with the formula's T, into an SVG, PDF or PNG file."""
        from tstar.checking.figure import Line, draw

        points = [
            (row.temperature or 1.0, 100 * row.test_accuracy, 100 * (row.error or 0.0))
            for row in self.rows[1:]
            if row.rate == 1
        ]
        line = Line("", points, 100 * self.plain.test_accuracy, self.temperature)
        draw([line], Path(path), f"{self.steps} steps, {self.plain.runs} seeds")


def _percent(row: Row) -> str:
    return f"{100 * row.test_accuracy:.1f} %"


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
    **training: Unpack[Keywords],
) -> Check:
    """Train briefly at several temperatures and compare the peak with the formula for such a training.

    Args:
        make_model: a function that makes a fresh model, such as ``lambda: MyModel()``; called under a seed for each
            training, so that all temperatures of a seed start from the same weights.
        data: in any form that :func:`tstar.csg` takes: a name or path, arrays, a ``Dataset``, a
            ``DataLoader``, ``{"train": …, "test": …}``. Of large data sets 20,000 samples are read.
        temperatures: the grid; by default (1 and) the formula's T times ¼, ½, 1, 2, 4.
        budget: seconds for the whole check; sets the number of steps of each training.
        seeds: trainings for each temperature.
        config: the whole protocol; its ``steps`` or ``epochs`` are the most that is trained, whatever the budget.
        csg: the data's difficulty where it is known, so that the formula can use it.
        head: the output layer's path, where the model has several.
        progress: called with the trainings done, their total, and what is next.
        training: in place of ``config``, how you train, in keywords of :func:`tstar.recommend`: ``optimizer`` (a name, a
            pair such as ``("sgd", 0.1)``, or a torch optimizer to read), ``lr``, ``momentum``, ``weight_decay``,
            ``batch_size``, ``steps``, ``epochs``, ``label_smoothing``. ``optimizer`` may also be your own, alone or in a
            pair: a class such as ``Lion``, a function ``f(parameters, lr=…, …)`` or its name, ``"package.module:Lion"``. It is
            given those of lr, weight_decay, momentum, nesterov and betas that it takes.
    """
    started = time.perf_counter()
    _check_maker(make_model)
    if not callable(progress):
        raise TstarError(f"progress must be a function, got {shown(progress)}.")
    config = _protocol(config, training)
    seeds, budget = whole("seeds", seeds, least=1), positive("budget", budget)
    given = None if temperatures is None else _given(temperatures)
    task = as_task(data)
    config = replace(
        config,
        augment=config.augment and task.raw,
        val_fraction=config.val_fraction or 0.1,
        batch_size=min(config.batch_size, len(task.y_train)),
    )
    model = _make(make_model, 0)
    parts = make_parts(task, config, 0)  # type: ignore[arg-type]
    example = parts.ready(parts.x[:2])
    found = resolve_head(model, head, example)
    check_head(model, found)
    ends = sorted(ENDS & {*found.passed})
    if ends and config.loss == "cross-entropy":
        raise TstarError(
            f"The model must return logits, on which a check trains with cross-entropy, got a {ends[0]} after "
            f"{found.path!r}; remove it in make_model."
        )
    if found.num_classes != task.num_classes:
        raise TstarError(
            f"The model must have one output for each of the data's {task.num_classes} classes, got "
            f"{found.num_classes}; change make_model."
        )
    runs = seeds * (2 + (_MOST if given is None else len(given)))
    seconds = budget - time.perf_counter() + started
    config = replace(config, steps=_steps(model, parts, config, seconds, runs))
    told = Training.of(
        make_optimizer(model, config), steps=config.steps, batch_size=config.batch_size
    )
    advice = recommend(
        model,
        csg=csg,
        num_classes=task.num_classes,
        optimizer=told,
        head=found,
        example_input=example,
    )
    formula = explain(found.num_features, task.num_classes, csg, optimizer=told).temperature
    grid = _around(formula) if given is None else given
    recipes = [(None, 1.0), *((T, 1.0) for T in grid), *_favored(told, found, csg)]
    total = seeds * len(recipes)

    chance = 1 / task.num_classes  # a run that diverges guesses
    results: dict[Recipe, list[Result]] = {recipe: [] for recipe in recipes}
    for seed in range(seeds):
        parts = make_parts(task, config, seed)  # type: ignore[arg-type]
        for (T, rate), found_here in results.items():
            done = sum(map(len, results.values()))
            progress(done, total, "plain" if T is None else f"T = {T:.3g}")
            trained = run(
                get("default") if T is None else get("fixed", temperature=T, norm="batch"),
                lambda seed=seed: _make(make_model, seed),  # type: ignore[misc]
                parts,
                replace(config, lr=rate * config.lr),
                num_classes=task.num_classes,
                seed=seed,
                head=found.path,
            )
            found_here.append(trained.result)
    progress(total, total, "")
    curves = (_curve("none", [None], results, chance), _curve("batch", grid, results, chance))
    nearest = min(grid, key=lambda T: abs(math.log(T / formula)))
    judged = judge(Condition({}, curves, {}), nearest)
    assert judged is not None
    return Check(
        rows=tuple(_row(recipe, runs, chance) for recipe, runs in results.items()),
        judged=judged,
        temperature=formula,
        advice=advice,
        steps=config.steps or 0,
        epochs=(config.steps or 0) * config.batch_size / len(parts.y),
        seconds=time.perf_counter() - started,
        val_samples=len(parts.y_val),
        test_samples=len(parts.y_test),
    )


def _favored(training: Training, head: Head, csg: float | None) -> list[Recipe]:
    """The recipe that the evidence favors for this optimizer, where it has another rate."""
    rate = similar.rate_of(training.family)
    if rate == 1 or training.lr is None:
        return []
    faster = replace(training, lr=rate * training.lr)
    T = explain(head.num_features, head.num_classes, csg, optimizer=faster).temperature
    return [(T, rate)]


def _curve(
    norm: str,
    grid: Sequence[float | None],
    results: Mapping[Recipe, Sequence[Result]],
    chance: float,
) -> Curve:
    """The results as a curve; the plain model is the one at T = 1 without a norm."""
    val, test = np.array([_accuracies(results[T, 1.0], chance) for T in grid]).transpose(1, 2, 0)
    temperatures = np.array([1.0 if T is None else T for T in grid])
    ran = np.ones(val.shape, dtype=bool)
    return Curve({"norm": norm}, temperatures, tuple(range(len(val))), val, test, ran)


def _accuracies(runs: Sequence[Result], chance: float) -> tuple[list[float], list[float]]:
    """Validation and test accuracy of each run; one that diverged guesses."""
    val = [chance if run.val_accuracy is None else run.val_accuracy for run in runs]
    test = [chance if run.test_accuracy is None else run.test_accuracy for run in runs]
    return val, test


def _check_maker(make_model: Any) -> None:
    if isinstance(make_model, nn.Module) or not callable(make_model):
        kind = "a model" if isinstance(make_model, nn.Module) else "an object"
        raise TstarError(
            f"make_model must be a function that makes a fresh model for each training, got {kind} of type "
            f"{type(make_model).__name__}; pass one, such as lambda: MyModel()."
        )


def _protocol(config: Config | None, training: Mapping[str, Any]) -> Config:
    """The protocol as it is given, or the paper's with what the keywords say."""
    told = {name: value for name, value in training.items() if value is not None}
    for name in told:
        if name not in _TRAINING:
            raise unknown("keyword", name, _TRAINING)
    if config is None:
        apart = {"epochs": told.pop("epochs")} if "epochs" in told else {}
        apart |= _own_optimizer(told)
        read = vars(Training.of(**told))
        if read["optimizer"] not in (None, *OPTIMIZERS):
            raise TstarError(
                f"{unknown('optimizer', read['optimizer'], OPTIMIZERS)} To check another, pass its class, or a function "
                "f(parameters, lr=…, …) that makes one, as in optimizer=(Lion, 1e-4)."
            )
        return Config(**{n: read[n] for n in _TRAINING if read.get(n) is not None} | apart)
    if told:
        raise TstarError(
            f"How to train must be said once, got config and {', '.join(told)}; put it all into the Config."
        )
    return config


def _own_optimizer(told: dict[str, Any]) -> dict[str, Any]:
    """The name of an optimizer of the user's own, which is taken out of ``told``; the rate of a pair stays there."""
    given = told.get("optimizer")
    part, rate = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if isinstance(part, type) or (callable(part) and not hasattr(part, "param_groups")):
        part = own.reference_to(part, "optimizer")
    if not own.is_reference(part):
        return {}
    del told["optimizer"]
    if rate is not None:
        told.setdefault("lr", rate)
    return {"optimizer": part}


def _make(make_model: Callable[[], nn.Module], seed: int) -> nn.Module:
    """A fresh model from a seed; the caller's random generators stay as they are."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        with own.explained("make_model"):
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


def _given(temperatures: Any) -> list[float]:
    scalar = not getattr(temperatures, "shape", (1,))  # which iterates, and then does not
    if isinstance(temperatures, str) or not isinstance(temperatures, Iterable) or scalar:
        raise TstarError(f"temperatures must be a list of numbers, got {shown(temperatures)}.")
    grid = sorted({positive("temperatures", T) for T in temperatures})
    if not grid:
        raise TstarError("temperatures must hold at least one number, got none.")
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


def _row(recipe: Recipe, runs: Sequence[Result], chance: float) -> Row:
    val, test = _accuracies(runs, chance)
    error = stdev(test) / math.sqrt(len(test)) if len(test) > 1 else None
    gone = sum(run.status == "diverged" for run in runs)
    return Row(recipe[0], mean(val), mean(test), error, len(runs), gone, recipe[1])
