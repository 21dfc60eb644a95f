"""A pilot: short trainings of your model as it is, faster, with more decay, and as advised.

Every recipe trains a share of your steps, with a schedule of its own, from the same weights and on
the same batches. Validation data choose the best, test data say what it gains.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from statistics import fmean
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tstar.advice import Recommendation, recommend
from tstar.checks import positive, whole
from tstar.checks import share as checked_share
from tstar.errors import TstarError, unknown
from tstar.formula import temperature
from tstar.lab import own
from tstar.lab.data.door import as_task
from tstar.lab.methods import get
from tstar.lab.recipe import Method, Recipe, Setting
from tstar.lab.statistics import noise
from tstar.lab.training.config import OPTIMIZERS, Config
from tstar.lab.training.loop import length
from tstar.lab.training.parts import Parts, make_parts
from tstar.lab.training.running import FORWARD, output_layer, run, step_seconds
from tstar.law import law_temperature
from tstar.output_layer import tempered_heads
from tstar.task import check_task

__all__ = ["Check", "Row", "check"]
_TIMES = 3.0  # the rate, and the decay
_LEAST_SHARE, _LEAST_STEPS, _LEAST_SEEDS = 0.03, 20, 2
_MARGIN = 1.2  # on the time: a machine may become slower


@dataclass(frozen=True)
class Row:
    """One way of training: mean accuracies over the seeds, and the paired difference from plain.

    Accuracies and differences are shares, not points; ``noise`` is the largest difference that
    chance explains (:func:`tstar.lab.statistics.noise`). ``do`` says what to change. A run that
    diverged counts as chance, 1/K.
    """

    name: str
    do: str
    val_accuracy: float
    test_accuracy: float
    difference: float
    noise: float
    diverged: int


@dataclass(frozen=True)
class Check:
    """The rows of a pilot, the plain model's first; no rows if fewer than two seeds finished.

    ``steps`` were trained of the ``full_steps`` of the whole training. ``advice`` is what
    ``recommend`` says about a training of ``steps``.
    """

    rows: tuple[Row, ...]
    advice: Recommendation
    steps: int
    full_steps: int
    seeds: int
    seconds: float

    @property
    def best(self) -> Row:
        """The row with the highest validation accuracy; the simplest if several tie."""
        return max(self.rows, key=lambda row: row.val_accuracy)

    @property
    def gains(self) -> bool:
        """Whether the best row beats the plain model on test data by more than chance explains."""
        return self.best.difference > self.best.noise

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        share = f"{100 * self.steps / self.full_steps:.2g} %"
        pilot = f"In a pilot of {self.steps} steps ({share} of {self.full_steps:,})"
        if not self.rows:
            return (
                f"{pilot} fewer than two seeds finished within the budget, since this machine was "
                "slower than its first steps: nothing can be said; give it a larger budget."
            )
        pilot += f" with {self.seeds} seeds"
        plain, best = self.rows[0], self.best
        base = f"your model's {100 * plain.test_accuracy:.1f} %"
        way = "above" if best.difference >= 0 else "below"
        points = f"{100 * abs(best.difference):.1f} points {way}"
        if best is plain:
            return f"{pilot} nothing beat {base}: train it as it is."
        if not self.gains:
            return (
                f"{pilot} nothing beat {base} beyond noise (the best on validation data, "
                f"{best.name}, was {points}): train it as it is."
            )
        return (
            f"{pilot} {best.name} gave {100 * best.test_accuracy:.1f} %, {points} {base} and "
            f"beyond noise: {best.do}."
        )

    def __str__(self) -> str:
        lines = [f"{'':24} {'val %':>7} {'test %':>7} {'± plain':>14}"]
        for i, row in enumerate(self.rows):
            gap = f"{100 * row.difference:+.1f} ± {100 * row.noise:.1f}" if i else ""
            gone = f" ({row.diverged} diverged)" if row.diverged else ""
            scores = f"{100 * row.val_accuracy:7.1f} {100 * row.test_accuracy:7.1f}"
            lines.append(f"{row.name:24} {scores} {gap:>14}{gone}")
        return "\n".join([*(lines if self.rows else []), self.sentence])

    def to_dict(self) -> dict[str, Any]:
        """The check as plain JSON types."""
        return {
            **vars(self),
            "rows": [asdict(row) for row in self.rows],
            "advice": self.advice.to_dict(),
            "best": self.best.name if self.rows else None,
            "gains": self.gains if self.rows else None,
            "sentence": self.sentence,
        }


@dataclass(frozen=True, eq=False)
class _Trial:
    """One way of training, its name, and what to do if it wins."""

    name: str
    do: str
    method: Method
    config: Config


class _Outcome(NamedTuple):
    """Validation accuracy, how right each test sample is (0 or 1; 1/K if it diverged)."""

    val: float
    right: list[float]
    diverged: bool


class _OutOfTime(Exception):
    pass


def check(
    make_model: Callable[[], nn.Module] | nn.Module,
    data: Any,
    *,
    budget: float = 10.0,
    share: float = 0.1,
    seeds: int = 3,
    config: Config | None = None,
    loss: Callable[[Tensor, Tensor], Tensor] | None = None,
    csg: float | None = None,
    head: str | None = None,
    scenario: str = "scratch",
    tuned: bool = False,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
    **training: Any,
) -> Check:
    """Train briefly in up to four ways, and say which one to train with.

    The ways: your model as it is, at three times the rate, at three times the decay, and as
    :func:`tstar.recommend` advises for a training of this length (if it would leave the model, a
    BatchNorm and the law's T at three times the rate). The first steps are timed; then as many
    seeds and ways are planned as fit into the budget.

    Args:
        make_model: a function that makes a fresh model, called under a seed for each training; or
            a model, which is copied, so that seeds differ in the order of batches alone.
        data: a name or path, arrays, a ``Dataset``, a ``DataLoader``, or a dictionary of ``train``
            and ``test``.
        budget: minutes for the whole pilot.
        share: the share of your steps that a pilot trains; down to 3 % if the budget is small.
        seeds: trainings of each way; down to 2 if the budget is small.
        config: the protocol of your training; the paper's by default.
        loss: your own, ``f(logits, targets)``, the mean over the batch; cross-entropy by default.
        csg: the difficulty of the data, if it is known, so that the formula can use it.
        head: the path of the output layer, if the model has several.
        scenario: ``"scratch"`` or ``"finetune"``.
        tuned: rate and decay were tuned for this model.
        progress: called with the trainings done, their total, and what is next.
        training: fields of the ``Config`` that differ: ``optimizer`` (a name, a torch optimizer, a
            class or function), ``lr``, ``epochs``, ``steps``, ``batch_size``, ``scheduler``, …

    Returns:
        The rows, and ``sentence``, which says what to do.

    Raises:
        TstarError: if the budget is too small; the message says what it needs.
    """
    started = time.perf_counter()
    seeds, budget = whole("seeds", seeds, least=_LEAST_SEEDS), 60 * positive("budget", budget)
    config = replace(_protocol(config, training), scenario=scenario, tuned=tuned)
    task, model, parts, setting = _read(make_model, data, config, head)
    config = replace(setting.training, samples=None)
    step = step_seconds(model, parts, config)
    left = budget - time.perf_counter() + started
    steps, ways, seeds = _plan(step, parts, config, checked_share("share", share), seeds, left)
    setting = replace(setting, csg=csg, training=replace(setting.training, steps=steps))
    full, _ = length(len(parts.y), config)
    trials, advice = _trials(model, setting, full)
    results: dict[_Trial, list[_Outcome]] = {trial: [] for trial in trials[:ways]}
    try:
        for seed, trial in product(range(seeds), results):
            progress(sum(map(len, results.values())), seeds * ways, trial.name)
            done = _train(trial, make_model, task, setting, seed, loss, started + budget)
            results[trial].append(done)
    except _OutOfTime:
        seeds = min(map(len, results.values()))  # those that every way has finished
    rows = _rows(results, seeds) if seeds > 1 else ()
    return Check(rows, advice, steps, full, seeds, time.perf_counter() - started)


def _read(
    make_model: Any, data: Any, config: Config, head: str | None
) -> tuple[Any, nn.Module, Parts, Setting]:
    """The data as a task, a model, the parts of the first seed, and what is known of them."""
    task: Any = as_task(data)
    augment, held_out = config.augment and task.raw, config.val_fraction or 0.1
    size = min(config.batch_size, len(task.y_train))
    config = replace(config, augment=augment, val_fraction=held_out, batch_size=size)
    model, parts = _make(make_model, 0), make_parts(task, config, 0)
    example = parts.ready(parts.x[:2])
    found = output_layer(model, head, example, task.num_classes)
    check_task(model, [found])
    known = replace(config, samples=len(parts.y))
    M, K = found.num_features, found.num_classes
    setting = Setting(M, K, known, head=found.path, inputs=example)
    return task, model, parts, setting


def _train(
    trial: _Trial,
    make_model: Any,
    task: Any,
    setting: Setting,
    seed: int,
    loss: Callable[[Tensor, Tensor], Tensor] | None,
    deadline: float,
) -> _Outcome:
    """One training, which is given up after the epoch that ends past the deadline."""

    def prepare(model: nn.Module, setting: Setting, **options: Any) -> Recipe:
        recipe = trial.method.function(model, setting, **options)
        for tempered in tempered_heads(recipe.model).values():
            tempered.guard = None  # the pilot itself measures what the guard would warn of
        if loss is not None:
            recipe.loss = lambda logits, targets, inputs: loss(logits, targets)
        return recipe

    def on_time(*_: Any) -> None:
        if time.perf_counter() > deadline:
            raise _OutOfTime

    K = setting.num_classes
    trained = run(
        replace(trial.method, function=prepare),
        lambda: _make(make_model, seed),
        task,
        trial.config,
        num_classes=K,
        seed=seed,
        head=setting.head,
        progress=on_time,
    )
    if trained.result.status == "diverged":
        return _Outcome(1 / K, [1 / K] * len(trained.parts.y_test), True)
    return _Outcome(trained.result.val_accuracy or 0.0, trained.right(), False)


def _plan(
    step: float, parts: Parts, config: Config, share: float, seeds: int, seconds: float
) -> tuple[int, int, int]:
    """The most telling choice of steps, ways and seeds that fits into the time."""
    full, epochs = length(len(parts.y), config)
    forward = step * FORWARD / config.batch_size

    def cost(steps: int, runs: int) -> float:
        looks = math.ceil(steps * epochs / full)  # at the validation part, one each epoch
        measured = forward * ((looks + 1) * len(parts.y_val) + len(parts.y_test))
        return _MARGIN * runs * (steps * step + measured)

    all_ways = 4 if config.weight_decay else 3
    choices = [(all_ways, n) for n in range(seeds, _LEAST_SEEDS - 1, -1)] + [(2, _LEAST_SEEDS)]
    steps = full
    for part in sorted({share, min(share, _LEAST_SHARE)}, reverse=True):
        steps = min(full, max(_LEAST_STEPS, round(part * full)))
        for ways, n in choices:
            if cost(steps, ways * n) <= seconds:
                return steps, ways, n
    needed = (cost(steps, 2 * _LEAST_SEEDS) - seconds) / 60
    raise TstarError(
        f"budget must allow two seeds of two trainings of {steps} steps, {step:.2g} s each here; "
        f"add {math.ceil(10 * needed) / 10:.1f} minutes to it."
    )


def _trials(model: nn.Module, setting: Setting, full: int) -> tuple[list[_Trial], Recommendation]:
    """The ways to train, the most telling first, and the advice for such a training."""
    config, plain = replace(setting.training, samples=None), get("default")
    measured = config.optimizer in OPTIMIZERS  # with another the paper's T is tried
    known = {name: getattr(setting, name) for name in ("csg", "num_classes", "head")}
    how = {"optimizer": setting.training, "scenario": config.scenario}
    advice = recommend(model, example_input=setting.inputs, **how, **known)

    def law(lr: float, steps: int) -> float:
        if not measured:
            return temperature(setting.num_features, setting.num_classes, setting.csg)
        training = replace(config, lr=lr, steps=steps)
        return law_temperature(setting.num_features, setting.num_classes, training)

    faster = replace(config, lr=_TIMES * config.lr)
    if measured and not advice.leave:
        name, rate, trained = "the advice", advice.lr or config.lr, config
        method = get("advised", advice=advice)
    else:
        T, rate, trained = law(faster.lr, config.steps), faster.lr, faster
        name, method = "BN and T, rate × 3", get("fixed", temperature=T, norm="batch")
    do = f"train tstar.temper(model, {law(rate, full):.3g}) with lr={rate:g}"
    if measured and not advice.leave and not advice.surgery:
        own = "" if advice.head_lr is None else f" and lr={advice.head_lr:g} for the output layer"
        do = f"train it with lr={rate:g}{own}, weight_decay={advice.weight_decay:g}"
    trials = [
        _Trial("your model as it is", "train it as it is", plain, config),
        _Trial(name, do, method, trained),
        _Trial("three times the rate", f"train it with lr={faster.lr:g}", plain, faster),
    ]
    if config.weight_decay:
        decayed = replace(config, weight_decay=_TIMES * config.weight_decay)
        do = f"train it with weight_decay={decayed.weight_decay:g}"
        trials.append(_Trial("three times the decay", do, plain, decayed))
    return trials, advice


def _rows(results: dict[_Trial, list[_Outcome]], seeds: int) -> tuple[Row, ...]:
    plain, rows = None, []
    for trial, outcomes in results.items():
        done = outcomes[:seeds]
        right = [outcome.right for outcome in done]
        plain = plain or right
        val, test = fmean(outcome.val for outcome in done), fmean(map(fmean, right))
        gap, gone = test - fmean(map(fmean, plain)), sum(outcome.diverged for outcome in done)
        rows.append(Row(trial.name, trial.do, val, test, gap, noise(right, plain), gone))
    return tuple(rows)


def _make(make_model: Callable[[], nn.Module] | nn.Module, seed: int) -> nn.Module:
    """A fresh model from a seed; the caller's random generators stay as they are."""
    if isinstance(make_model, nn.Module):
        return copy.deepcopy(make_model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: nn.Module = own.call("make_model", make_model, returns=nn.Module)
    return model


def _protocol(config: Config | None, training: dict[str, Any]) -> Config:
    """The protocol, with what the keywords say."""
    said = {name: value for name, value in training.items() if value is not None}
    if "scheduler" in said:
        said["schedule"] = said.pop("scheduler")
    if not isinstance(said.get("optimizer", ""), str):
        said = _optimizer(said.pop("optimizer")) | said
    known = [field.name for field in fields(Config)]
    for name in said:
        if name not in known:
            raise unknown("keyword", name, known)
    return replace(config or Config(), **said)


def _optimizer(given: Any) -> dict[str, Any]:
    """The fields of a ``Config`` for an optimizer that is an object, a class or a function."""
    if not isinstance(given, torch.optim.Optimizer):
        return {"optimizer": own.reference_to(given, "optimizer")}
    group, kind = given.param_groups[0], type(given)
    names = ("lr", "momentum", "weight_decay", "nesterov")
    said: dict[str, Any] = {name: group[name] for name in names if name in group}
    if "betas" in group:
        said["beta1"], said["beta2"] = group["betas"]
    known = kind.__module__.startswith("torch.optim") and kind.__name__.lower() in OPTIMIZERS
    name = kind.__name__.lower() if known else own.reference_to(kind, "optimizer")
    return {**said, "optimizer": name}
