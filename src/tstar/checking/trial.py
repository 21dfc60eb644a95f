"""Check the formula on your own model: a short sweep over T, and where its accuracy peaks.

This is what a skeptic runs first. Every temperature gets the same few steps, seeds and data; the
peak is chosen on validation data, and the accuracies are measured on test data.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from tstar import own
from tstar.advice import recommend
from tstar.checking.record import Check, Row
from tstar.curves import Condition, Curve, judge
from tstar.data.task import as_task
from tstar.errors import TstarError, shown, unknown
from tstar.formula import similar
from tstar.formula.equation import explain
from tstar.formula.training import Keywords, Training
from tstar.methods import get
from tstar.numbers import positive, whole
from tstar.surgery.finding import check_head, resolve_head
from tstar.surgery.probing import ENDS
from tstar.training import Config, Result
from tstar.training.config import OPTIMIZERS, SCHEDULES
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
    "optimizer", "lr", "momentum", "weight_decay", "batch_size", "steps", "epochs", "label_smoothing", "scheduler",
)  # fmt: skip
_NOT_HERE = {
    "samples": "a check counts them in the data; leave it out",
    "loss": "a check trains with cross-entropy, or with config=tstar.training.Config(loss='package.module:name')",
}
_MOST = 6  # temperatures of the grid that is made here


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
            ``batch_size``, ``steps``, ``epochs``, ``label_smoothing``, ``scheduler`` (a name). ``optimizer`` may also be
            your own, alone or in a pair: a class such as ``Lion``, a function ``f(parameters, lr=…, …)`` or its name,
            ``"package.module:Lion"``. It is given those of lr, weight_decay, momentum, nesterov and betas that it takes.
            Beside either, ``scenario`` and ``tuned``, which the advice depends on.
    """
    started = time.perf_counter()
    _check_maker(make_model)
    if not callable(progress):
        raise TstarError(f"progress must be a function, got {shown(progress)}.")
    meant = Training.of(scenario=training.pop("scenario", None), tuned=training.pop("tuned", False))
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
        make_optimizer(model, config),
        steps=config.steps,
        batch_size=config.batch_size,
        label_smoothing=config.label_smoothing,
        scheduler=config.schedule if config.schedule in SCHEDULES else None,
        scenario=meant.scenario,
        tuned=meant.tuned,
    )
    advice = recommend(
        model,
        csg=csg,
        num_classes=task.num_classes,
        optimizer=told,
        samples=len(task.y_train),
        head=found,
        example_input=example,
    )

    def formula_for(training: Training) -> float:
        M, K, samples = found.num_features, task.num_classes, len(task.y_train)
        return explain(M, K, csg, optimizer=training, samples=samples).temperature

    formula = formula_for(told)
    grid = _around(formula) if given is None else given
    recipes = [(None, 1.0), *((T, 1.0) for T in grid)]
    rate = similar.rate_of(told)  # what the evidence favors for this optimizer
    if rate != 1 and told.lr is not None:
        recipes.append((formula_for(replace(told, lr=rate * told.lr)), rate))
    total = seeds * len(recipes)

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
    scores = {recipe: _accuracies(runs, task.num_classes) for recipe, runs in results.items()}
    curves = (_curve("none", [None], scores), _curve("batch", grid, scores))
    nearest = min(grid, key=lambda T: abs(math.log(T / formula)))
    judged = judge(Condition({}, curves, {}), nearest)
    assert judged is not None
    return Check(
        rows=tuple(_row(recipe, runs, *scores[recipe]) for recipe, runs in results.items()),
        judged=judged,
        temperature=formula,
        advice=advice,
        steps=config.steps or 0,
        epochs=(config.steps or 0) * config.batch_size / len(parts.y),
        seconds=time.perf_counter() - started,
        val_samples=len(parts.y_val),
        test_samples=len(parts.y_test),
    )


def _curve(
    norm: str, grid: Sequence[float | None], scores: Mapping[Recipe, Sequence[Sequence[float]]]
) -> Curve:
    """The scores as a curve; the plain model is the one at T = 1 without a norm."""
    val, test = np.array([scores[T, 1.0] for T in grid]).transpose(1, 2, 0)
    temperatures = np.array([1.0 if T is None else T for T in grid])
    ran = np.ones(val.shape, dtype=bool)
    return Curve({"norm": norm}, temperatures, tuple(range(len(val))), val, test, ran)


def _accuracies(runs: Sequence[Result], num_classes: int) -> tuple[list[float], list[float]]:
    """Validation and test accuracy of each run."""
    val, test = zip(*(run.accuracies(num_classes) for run in runs), strict=True)
    return [float(x) for x in val], [float(x) for x in test]


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
        if name in _NOT_HERE:
            raise TstarError(f"check takes no {name}: {_NOT_HERE[name]}.")
        if name not in _TRAINING:
            raise unknown("keyword", name, (*_TRAINING, "scenario", "tuned"))
    if config is None:
        apart = {"epochs": told.pop("epochs")} if "epochs" in told else {}
        if "scheduler" in told:
            apart["schedule"] = _schedule(told.pop("scheduler"))
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


def _schedule(scheduler: Any) -> str:
    """The name of a schedule; a scheduler belongs to an optimizer of the user's, and a check makes its own."""
    if not isinstance(scheduler, str):
        raise TstarError(
            f"scheduler must be one of {', '.join(SCHEDULES)}, got {type(scheduler).__name__}; pass a schedule of your own as "
            "config=tstar.training.Config(schedule='package.module:name')."
        )
    return scheduler.lower()


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


def _row(
    recipe: Recipe, runs: Sequence[Result], val: Sequence[float], test: Sequence[float]
) -> Row:
    error = stdev(test) / math.sqrt(len(test)) if len(test) > 1 else None
    gone = sum(run.status == "diverged" for run in runs)
    return Row(recipe[0], mean(val), mean(test), error, len(runs), gone, recipe[1])
