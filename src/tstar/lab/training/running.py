"""One run of a method: build, find the output layer, prepare, train, measure; and its time."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tstar.errors import TstarError
from tstar.lab.data import DataSet
from tstar.lab.measuring import predict
from tstar.lab.recipe import Method, Setting
from tstar.lab.training.config import Config
from tstar.lab.training.layout import channels_last
from tstar.lab.training.loop import Checkpoint, Result, length, train
from tstar.lab.training.optim import make_optimizer
from tstar.lab.training.parts import Parts, make_parts
from tstar.output_layer import Head, resolve_head, tempered_heads

# A forward pass is about a third of a training step (forward, and backward at twice its cost).
FORWARD = 1 / 3
_STEPS, _ENOUGH = 3, 2.0  # steps, or seconds


@dataclass(frozen=True)
class Trained:
    """A run that has ended, with what was known before it and how many trainings it took.

    ``head`` is T and norm of the tempered head that the method made, if any.
    """

    result: Result
    model: nn.Module
    setting: Setting
    parts: Parts
    head: tuple[float, bool] | None = None
    trainings: int = 1

    def right(self) -> list[float]:
        """How right each test sample is, 0 or 1; a run that diverged guesses."""
        if self.result.status == "diverged":
            return [1 / self.setting.num_classes] * len(self.parts.y_test)
        logits = predict(self.model, self.parts.x_test, prepare=self.parts.ready)
        found: list[float] = (logits.argmax(1) == self.parts.y_test).double().tolist()
        return found


def run(
    method: Method,
    make_model: Callable[[], nn.Module],
    data: DataSet | Parts,
    config: Config,
    *,
    num_classes: int,
    seed: int = 0,
    csg: float | None = None,
    teacher: Callable[[], nn.Module] | None = None,
    head: str | None = None,
    checkpoint: Checkpoint | None = None,
) -> Trained:
    """Train a method on one seed. If it has candidates, the best on validation data counts.

    Args:
        make_model: makes the model as it is before the method changes it, the same at each call.
        data: a data set, or what :func:`make_parts` made of it for this seed.
        teacher: makes the trained teacher of a method that needs one.
        head: the output layer's path, if it cannot be found without help.
    """
    parts = data if isinstance(data, Parts) else make_parts(data, config, seed)
    steps, epochs = length(len(parts.y), config)

    def once(method: Method, checkpoint: Checkpoint | None) -> Trained:
        nonlocal head
        # Models and methods may draw from the global generator: seeded here, restored afterwards.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = make_model()
            found = output_layer(model, head, parts.ready(parts.x[:2]).cpu(), num_classes)
            head = found.path  # the same in every candidate of a search
            setting = Setting(
                num_features=found.num_features,
                num_classes=num_classes,
                training=replace(config, steps=steps, epochs=epochs, samples=len(parts.y)),
                csg=csg,
                loss=config.loss,
                teacher=teacher() if teacher and "teacher" in method.needs else None,
                validation=parts.validation if "validation" in method.needs else None,
                head=found,
                inputs=parts.ready(parts.x[: config.batch_size]),
            )
            recipe = method.prepare(model, setting)
            made = [
                (float(h.temperature), h.norm is not None)
                for h in tempered_heads(recipe.model).values()
            ]
        result = train(recipe, parts, config, seed=seed, checkpoint=checkpoint, head=head)
        return Trained(result, recipe.model, setting, parts, made[0] if made else None)

    if not method.candidates:
        return once(method, checkpoint)
    runs = {each.options["temperature"]: once(each, None) for each in method.candidates}
    trials = [(T, each.result.val_accuracy) for T, each in runs.items()]  # None if it diverged
    best = runs[_best(trials)]
    seconds = sum(each.result.seconds for each in runs.values())
    result = replace(best.result, seconds=seconds, extra={**best.result.extra, "trials": trials})
    return replace(best, result=result, trainings=len(runs))


def _best(trials: Sequence[tuple[float, float | None]]) -> float:
    """The T of the best score, and of equal ones that nearest to 1; any score beats none."""

    def rank(trial: tuple[float, float | None]) -> tuple[float, float]:
        return (-1.0 if trial[1] is None else trial[1], -abs(math.log(trial[0])))

    return max(trials, key=rank)[0]


def output_layer(model: nn.Module, path: str | None, example: Any, num_classes: int) -> Head:
    """The output layer, which must have one output for each class of the data."""
    found = resolve_head(model, path, example)
    if found.num_classes != num_classes:
        raise TstarError(
            f"The model must have one output for each of the data's {num_classes} classes, got "
            f"{found.num_classes}; change the model."
        )
    return found


def step_seconds(model: nn.Module, parts: Parts, config: Config) -> float:
    """Seconds per step, after one to warm up. Model and random generators stay as they are."""
    generator = torch.Generator().manual_seed(0)
    rows = (torch.arange(config.batch_size) % len(parts.y)).to(parts.y.device)
    times = [time.perf_counter()]
    with torch.random.fork_rng(devices=[]):
        probe = copy.deepcopy(model).to(parts.y.device).train()
        optimizer = make_optimizer(probe, config)
        with channels_last(probe, images=len(parts.x.shape) == 4):
            while len(times) < 3 or (len(times) < _STEPS + 2 and times[-1] - times[1] < _ENOUGH):
                inputs = parts.distorted(parts.x[rows], generator)
                with torch.autocast(inputs.device.type, torch.bfloat16, enabled=config.amp):
                    loss = F.cross_entropy(probe(inputs), parts.y[rows])
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                optimizer.step()
                float(loss.detach())  # waits for an accelerator
                times.append(time.perf_counter())
    return (times[-1] - times[1]) / (len(times) - 2)
