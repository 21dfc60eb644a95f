"""Check an advice on your own model and data: train plain and as advised, and compare.

Both ways train from the same weights on the same batches, with each of several seeds: all steps if
the budget allows, else as many as fit, with a schedule of their own. The test part says what it
gains; there is nothing to choose, so that no validation part is held out.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from statistics import fmean
from typing import Any

import torch
from torch import nn

from tstar.advice import Recommendation
from tstar.errors import TstarError, positive, unknown, whole
from tstar.formula import temperature
from tstar.lab import own
from tstar.lab.data.door import as_task
from tstar.lab.methods import get
from tstar.lab.methods.common import changes
from tstar.lab.recipe import Method, Recipe, Setting, cross_entropy
from tstar.lab.statistics import noise
from tstar.lab.training.config import OPTIMIZERS, SCHEDULES, Config
from tstar.lab.training.parts import make_parts
from tstar.lab.training.running import FORWARD, Trained, output_layer, run, step_seconds
from tstar.output_layer import tempered_heads
from tstar.surgery import temper

_LEAST_SHARE, _LEAST_STEPS, _LEAST_SEEDS = 0.03, 20, 2
_MARGIN = 1.2  # on the time: a machine may become slower
# Pilots of a tenth of the steps that were ahead of plain, as results/history.md counts them.
FOLLOWED, PILOTS = 0.66, 70


@dataclass(frozen=True)
class Check:
    """Test accuracies (shares) of the plain model and of the recipe, one for each seed.

    ``noise`` is the largest difference that chance explains (:func:`tstar.lab.statistics.noise`).
    A run that diverged counts as chance, 1/K. ``steps`` of ``full_steps`` were trained.
    """

    advice: Recommendation
    recipe: str
    plain: tuple[float, ...]
    advised: tuple[float, ...]
    noise: float
    steps: int
    full_steps: int
    seconds: float

    @property
    def difference(self) -> float:
        """The recipe's mean accuracy over the plain model's."""
        return fmean(self.advised) - fmean(self.plain)

    @property
    def sentence(self) -> str:
        """The result in one sentence, and for a part of the steps what that can tell."""
        share, points = self.steps / self.full_steps, 100 * self.difference
        length = f"all {self.steps:,} steps"
        if share < 1:
            length = f"{self.steps:,} of {self.full_steps:,} steps ({100 * share:.2g} %)"
        leave = "The advice changes nothing; this is the paper's method. "
        found = (leave if self.advice.leave else "") + (
            f"In {length} with {len(self.plain)} seeds {self.recipe} gave "
            f"{100 * fmean(self.advised):.1f} %, {abs(points):.1f} points "
            f"{'above' if points >= 0 else 'below'} your model's {100 * fmean(self.plain):.1f} %"
        )
        if abs(self.difference) <= self.noise:
            found += f", which chance explains (± {100 * self.noise:.1f}): no difference is seen."
        else:
            found += f" and beyond chance (± {100 * self.noise:.1f}): "
            found += f"follow {self.recipe}." if points > 0 else "train your model as it is."
        if share < 1 and points > 0:
            found += (
                f" A pilot is no proof: of our {PILOTS} of a tenth of the steps that were ahead, "
                f"{FOLLOWED:.0%} stayed ahead in the whole training."
            )
        return found

    def __str__(self) -> str:
        ways = {"your model as it is": self.plain, self.recipe: self.advised}
        rows = (
            f"{way:24} {' '.join(f'{100 * accuracy:6.1f}' for accuracy in accuracies)}"
            for way, accuracies in ways.items()
        )
        return "\n".join([f"{'test accuracy (%)':24} of each seed", *rows, self.sentence])

    def to_dict(self) -> dict[str, Any]:
        """The check as plain JSON types."""
        numbers = {name: value for name, value in vars(self).items() if name != "advice"}
        said = {"difference": self.difference, "sentence": self.sentence}
        return {**numbers, **said, "advice": self.advice.to_dict()}


def check(
    make_model: Callable[[], nn.Module] | nn.Module,
    data: Any,
    advice: Recommendation,
    *,
    budget: float = 10.0,
    seeds: int = 3,
    progress: Callable[[int, int, str], None] = lambda done, total, what: None,
    **protocol: Any,
) -> Check:
    """Train your model plain and as advised, and say which was better.

    If the advice changes nothing, the recipe is the paper's method, :func:`tstar.temper`. The first
    steps are timed; then both ways train all steps of the advice's training with as many seeds as
    fit into the budget, or a part of the steps with two seeds.

    Args:
        make_model: a function that makes a fresh model, called under a seed for each training; or
            a model, which is copied, so that seeds differ in the order of batches alone.
        data: a name or path, arrays, a ``Dataset``, a ``DataLoader``, or a dictionary of ``train``
            and ``test``; a fifth is the test part if there is none. At most 20,000 are read.
        advice: what :func:`tstar.recommend` said; it knows how you train.
        budget: minutes that the check is planned for; two seeds of both ways are always finished.
        seeds: trainings of each way; down to 2 if the budget is small.
        progress: called with the trainings done, their total, and what is next.
        protocol: fields of :class:`tstar.lab.training.Config` that the advice does not know, such
            as ``device``, ``augment`` or ``amp``; ``optimizer`` and ``loss`` may be a class or a
            function of yours at the top level of a file.

    Raises:
        TstarError: the budget is too small; the message says what it needs.
    """
    started = time.perf_counter()
    seeds, budget = whole("seeds", seeds, least=_LEAST_SEEDS), 60 * positive("budget", budget)
    task: Any = as_task(data)
    config = _config(advice, task, protocol)
    full, ways, read = config.steps or 1, (get("default"), _recipe(advice)), time.perf_counter()
    model, parts = _make(make_model, 0), make_parts(task, config, 0)
    found = output_layer(model, advice.heads[0], parts.ready(parts.x[:2]), task.num_classes)
    prepared = time.perf_counter() - read
    step = step_seconds(model, parts, config)
    measured = step * FORWARD / config.batch_size * len(parts.y_test)
    left = budget - time.perf_counter() + started
    steps, seeds = _plan(full, step, prepared + measured, seeds, left)
    results: list[list[Trained]] = []
    for seed in range(seeds):
        spent = time.perf_counter() - started
        if seed >= _LEAST_SEEDS and spent * (seed + 1) / seed > budget:
            break  # the machine is slower than its first steps were
        pair: list[Trained] = []
        for way in ways:
            progress(2 * seed + len(pair), 2 * seeds, way.name)
            known: dict[str, Any] = {"seed": seed, "head": found.path}
            known["num_classes"] = task.num_classes
            maker = partial(_make, make_model, seed)
            pair.append(run(way, maker, task, replace(config, steps=steps), **known))
        results.append(pair)
    by_way = zip(*results, strict=True)
    plain, advised = ([one.right() for one in way] for way in by_way)
    accuracies = (tuple(map(fmean, plain)), tuple(map(fmean, advised)))
    seconds = time.perf_counter() - started
    return Check(advice, ways[1].name, *accuracies, noise(advised, plain), steps, full, seconds)


def _config(advice: Recommendation, task: Any, protocol: dict[str, Any]) -> Config:
    """The lab's protocol of the plain training that an advice is about."""
    training = advice.training
    known = training.to_dict() | {"val_fraction": 0.0, "augment": task.raw}
    known = {n: v for n, v in known.items() if n not in ("samples", "epochs")}  # its steps count
    if training.family != "sgd":
        known.setdefault("momentum", 0.0)
    if training.schedule not in SCHEDULES:
        known.pop("schedule", None)
    if training.optimizer not in OPTIMIZERS:  # Adadelta, say
        kinds = {name.lower(): name for name in dir(torch.optim)}
        if training.optimizer in kinds:
            known["optimizer"] = f"torch.optim:{kinds[training.optimizer]}"
    if advice.case.head_lr is not None and training.lr:
        known["head_lr"] = advice.case.head_lr / training.lr
    for name in {"optimizer", "loss"} & {*protocol}:
        if not isinstance(protocol[name], str):
            protocol = {**protocol, name: own.reference_to(protocol[name], name)}
    known["batch_size"] = min(known["batch_size"], len(task.y_train))
    for name in protocol:
        if name not in (names := [item.name for item in fields(Config)]):
            raise unknown("keyword", name, names)
    return Config(**{**known, **protocol})


def _recipe(advice: Recommendation) -> Method:
    """The advice as the lab's training loop takes it; the paper's method if it changes nothing."""

    def prepare(model: nn.Module, setting: Setting) -> Recipe:
        known: dict[str, Any] = {"example_input": setting.inputs, "steps": setting.training.steps}
        twin = copy.deepcopy(model)
        if advice.leave:
            T = temperature(setting.num_features, setting.num_classes)
            twin = temper(twin, T, head=setting.head, inplace=True, **known)
        else:
            twin = replace(advice, live=False).apply(twin, **known)
        for head in tempered_heads(twin).values():
            head.guard = None  # the check itself measures what the guard would warn of
        return Recipe(twin, cross_entropy(setting), changes=changes(advice))

    return Method("the paper's method" if advice.leave else "the advice", prepare)


def _plan(full: int, step: float, fixed: float, seeds: int, seconds: float) -> tuple[int, int]:
    """Steps and seeds that fit into the time: all steps, if two seeds of them do.

    ``step`` are the seconds of a step, ``fixed`` those before and after a training.
    """

    def cost(steps: float, seeds: int) -> float:
        return _MARGIN * 2 * seeds * (steps * step + fixed)

    for n in range(seeds, _LEAST_SEEDS - 1, -1):
        if cost(full, n) <= seconds:
            return full, n
    least = min(full, max(_LEAST_STEPS, round(_LEAST_SHARE * full)))
    missing = cost(least, _LEAST_SEEDS) - seconds
    if missing > 0:
        raise TstarError(
            f"budget must allow two seeds of two trainings of {least} steps, {step:.2g} s each "
            f"here; add {math.ceil(missing / 6) / 10:.1f} minutes to it."
        )
    return least + int(-missing / (cost(1, _LEAST_SEEDS) - cost(0, _LEAST_SEEDS))), _LEAST_SEEDS


def _make(make_model: Callable[[], nn.Module] | nn.Module, seed: int) -> nn.Module:
    """A fresh model from a seed; the caller's random generators stay as they are."""
    if isinstance(make_model, nn.Module):
        return copy.deepcopy(make_model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: nn.Module = own.call("make_model", make_model, returns=nn.Module)
    return model
