"""The training loop: steps make an epoch, epochs a training; the last weights are measured."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tstar.errors import TstarError, number, shown
from tstar.lab import own
from tstar.lab.data import DataSet
from tstar.lab.files import written
from tstar.lab.measuring import Scores, evaluate, predict
from tstar.lab.recipe import Recipe, Setting, cross_entropy
from tstar.lab.training.config import Config
from tstar.lab.training.layout import channels_last
from tstar.lab.training.optim import make_optimizer, schedule
from tstar.lab.training.parts import Parts, Rows, make_parts
from tstar.output_layer import resolve_head, tempered_heads

# Points of a learning curve; longer trainings are measured every second, third, … epoch.
MOST_POINTS = 250


@dataclass(frozen=True)
class Result:
    """The result of a run. Accuracies are shares after the last epoch; losses are in nats.

    ``curves`` has one list per quantity, one number per epoch, or per epoch in the list ``epoch``.
    ``train_*`` are means over the epoch's augmented batches; ``nll``, ``ece`` are the test set's.
    All scores are ``None`` if ``status`` is ``"diverged"``. ``extra`` is what the method recorded.
    """

    status: str
    val_accuracy: float | None = None
    test_accuracy: float | None = None
    train_loss: float | None = None
    train_accuracy: float | None = None
    val_loss: float | None = None
    nll: float | None = None
    ece: float | None = None
    epochs: int = 0
    steps: int = 0
    seconds: float = 0.0
    images_per_second: float = 0.0
    curves: Mapping[str, list[float]] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


def train(
    model_or_recipe: nn.Module | Recipe,
    dataset: DataSet | Parts,
    config: Config | None = None,
    *,
    seed: int = 0,
    checkpoint: Checkpoint | None = None,
    head: str | None = None,
) -> Result:
    """Train in place and measure; see :mod:`tstar.lab.training`.

    ``head`` is the output layer's path, for a rate of its own.
    """
    config = config or Config()
    recipe = model_or_recipe
    if not isinstance(recipe, Recipe):  # a model alone is trained with cross-entropy
        recipe = Recipe(recipe, cross_entropy(Setting(0, 0, config, loss=config.loss)))
    config = replace(config, **recipe.changes)
    data = dataset if isinstance(dataset, Parts) else make_parts(dataset, config, seed)
    if recipe.finish is not None and not len(data.y_val):
        raise TstarError(
            "val_fraction > 0 must hold for a method that uses validation data; set it to 0.1, say."
        )
    model, device = recipe.model.to(data.y.device), data.y.device
    recipe.extra.to(device)
    was_training = model.training
    with channels_last(model, images=len(data.x.shape) == 4):
        training = _Training(recipe, model, data, config, seed, checkpoint, head)
        # Dropout and the like draw from the global generators: seeded here, restored afterwards.
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            training.restore()
            left = range(training.first, training.epochs + 1)
            finite = all(map(training.epoch, left))
            training.finish(finite)
        result = training.result(finite)
    model.train(was_training)
    return result


class _Training:
    """A training under way: everything that changes from step to step."""

    def __init__(
        self,
        recipe: Recipe,
        model: nn.Module,
        data: Parts,
        config: Config,
        seed: int,
        checkpoint: Checkpoint | None,
        head: str | None,
    ) -> None:
        self.recipe, self.model, self.data = recipe, model, data
        self.config, self.seed = config, seed
        self.device = data.y.device
        self.forward: Any = torch.compile(model) if config.compile else model
        self.trained = nn.ModuleList([model, recipe.extra])
        layer = None
        if config.head_lr != 1:  # for the layer alone, without a norm that a method put before it
            tempered = [*tempered_heads(model).values()]
            layer = tempered[0].layer if tempered else resolve_head(model, head).layer
        self.optimizer = make_optimizer(self.trained, config, layer)
        self.scheduled = schedule(config)
        self.metric = None if config.metric is None else own.bound(config.metric)
        # A method with a state of its own beside the modules is started anew, not continued.
        self.checkpoint = checkpoint if recipe.on_batch is None else None
        self.steps, self.epochs = length(len(data.y), config)
        self.shuffling = torch.Generator().manual_seed(seed)
        self.distorting = torch.Generator().manual_seed(seed + 1)
        self.curves: dict[str, list[float]] = {}
        self.recorded: dict[str, Any] = {}
        self.first, self.step, self.seen, self.started = 1, 0, 0, time.perf_counter()
        self.seconds = 0.0
        # Batches and samples done in this epoch; the sums stay on the model's device.
        self.done, self.count, self.lr = 0, 0, 0.0
        self.loss_sum = torch.zeros((), device=self.device)
        self.correct = torch.zeros((), device=self.device)
        self.val: tuple[Scores, dict[str, float]] | None = None

    def epoch(self, epoch: int) -> bool:
        """One pass over the data, and its measurement; false if the loss is no longer finite."""
        on_epoch = self.recipe.on_epoch
        factor = 1.0 if on_epoch is None else on_epoch(epoch, self.epochs)
        self.model.train()
        order = self.shuffling.get_state()
        shuffled = torch.randperm(len(self.data.y), generator=self.shuffling)
        left = torch.split(shuffled, self.config.batch_size)[self.done :]  # after the checkpoint
        for rows in left:
            if len(rows) == 1 or self.step == self.steps:
                break
            self.batch(rows.to(self.device), self.data.x[rows], factor)
            if self.checkpoint is not None and self.checkpoint.due():
                self.checkpoint.save(self.snapshot(epoch, order))
        self.seen += self.count
        record = {
            "lr": self.lr,
            "train_loss": float(self.loss_sum) / self.count,
            "train_accuracy": float(self.correct) / self.count,
        }
        if not math.isfinite(record["train_loss"]):
            return False
        self.done, self.count, self.lr = 0, 0, 0.0
        self.loss_sum, self.correct = map(torch.zeros_like, (self.loss_sum, self.correct))
        every = math.ceil(self.epochs / MOST_POINTS)
        if epoch % every == 0 or epoch == self.epochs:
            record |= {"epoch": epoch} if every > 1 else {}
            if len(self.data.y_val):
                self.val = self.measure(self.data.x_val, self.data.y_val)
                record |= {"val_accuracy": self.val[0].accuracy, "val_loss": self.val[0].loss}
                record |= {f"val_{name}": value for name, value in self.val[1].items()}
            if self.config.test_curve:
                test = self.measure(self.data.x_test, self.data.y_test)
                record["test_accuracy"] = test[0].accuracy
            for name, value in record.items():
                self.curves.setdefault(name, []).append(value)
        return True

    def batch(self, rows: Tensor, inputs: Tensor, factor: float) -> None:
        """One step of the optimizer."""
        config, recipe = self.config, self.recipe
        inputs, targets = self.data.distorted(inputs, self.distorting), self.data.y[rows]
        self.lr = config.lr * factor * self.scheduled(self.step, self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr * group.get("factor", 1.0)
        if recipe.on_batch is not None:
            recipe.on_batch(self.model, inputs, targets, self.lr)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=config.amp):
            logits = self.forward(inputs)
            if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(rows):
                raise TstarError(
                    f"The model must return one tensor of logits, {len(rows)}×K for a batch of "
                    f"{len(rows)}, got {shown(logits)}."
                )
            loss = recipe.loss(logits, targets, inputs)
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        if config.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.trained.parameters(), config.clip_norm)
        self.optimizer.step()
        self.loss_sum += loss.detach() * len(rows)
        self.correct += (logits.detach().argmax(1) == targets).sum()
        self.count, self.step, self.done = self.count + len(rows), self.step + 1, self.done + 1

    def measure(self, x: Rows, y: Tensor) -> tuple[Scores, dict[str, float]]:
        logits = predict(self.forward, x, prepare=self.data.ready, amp=self.config.amp)
        if self.metric is None or not logits.isfinite().all():
            return evaluate(logits, y), {}  # nothing is asked of a diverged model
        metric = number(f"What {self.config.metric} returns", self.metric(logits, y))
        return evaluate(logits, y), {"metric": metric}

    def finish(self, finite: bool) -> None:
        """The end of the training: the method has its last word."""
        self.seconds = time.perf_counter() - self.started
        if self.recipe.finish is not None and finite:
            assert self.data.validation is not None
            self.recorded |= self.recipe.finish(self.model, *self.data.validation)
            self.val = None  # the model has changed since
        if self.recipe.report is not None:
            self.recorded |= self.recipe.report()

    def result(self, finite: bool) -> Result:
        """The measurement: the weights after the last epoch, never the best one."""
        scores: dict[str, float] = {}
        test, own_test = self.measure(self.data.x_test, self.data.y_test)
        done = finite and math.isfinite(test.loss)
        if done:
            scores = {"test_accuracy": test.accuracy, "nll": test.loss, "ece": test.ece}
            scores |= {name: self.curves[name][-1] for name in ("train_loss", "train_accuracy")}
            self.recorded |= own_test
            if len(self.data.y_val):
                val, own_val = self.val or self.measure(self.data.x_val, self.data.y_val)
                scores |= {"val_accuracy": val.accuracy, "val_loss": val.loss}
                self.recorded |= {f"val_{name}": value for name, value in own_val.items()}
        return Result(
            status="done" if done else "diverged",
            epochs=self.epochs,
            steps=self.step,
            seconds=self.seconds,
            images_per_second=self.seen / self.seconds,
            curves=self.curves,
            extra=self.recorded,
            **scores,
        )

    def snapshot(self, epoch: int, order: Tensor) -> dict[str, Any]:
        """The state after a step; ``order`` is that of the shuffling before the epoch."""
        numbers = (epoch, self.done, self.step, self.seen, self.count, self.lr)
        on_gpu = [torch.cuda.get_rng_state(self.device)] if self.device.type == "cuda" else []
        return {
            "numbers": (*numbers, time.perf_counter() - self.started),
            "sums": (self.loss_sum, self.correct),
            "curves": self.curves,
            "modules": self.trained.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": (order, self.distorting.get_state(), torch.get_rng_state(), *on_gpu),
        }

    def restore(self) -> None:
        """Go on from the checkpoint, if there is one; with a damaged one, start anew."""
        if self.checkpoint is None or not self.checkpoint.path.exists():
            return
        fresh = copy.deepcopy(self.snapshot(1, self.shuffling.get_state()))
        try:
            path = self.checkpoint.path
            self.go_on(torch.load(path, map_location=self.device, weights_only=True))
        except Exception:  # a damaged file may raise and hold anything
            self.go_on(fresh)

    def go_on(self, state: Mapping[str, Any]) -> None:
        """Be where the training was in a snapshot."""
        self.first, self.done, self.step, self.seen, self.count, self.lr, spent = state["numbers"]
        self.started = time.perf_counter() - spent
        self.loss_sum, self.correct = state["sums"]
        self.curves = state["curves"]
        self.trained.load_state_dict(state["modules"])
        self.optimizer.load_state_dict(state["optimizer"])
        order, distorting, of_torch, *on_gpu = (each.cpu() for each in state["random"])
        self.shuffling.set_state(order)
        self.distorting.set_state(distorting)
        torch.set_rng_state(of_torch)
        for each in on_gpu:
            torch.cuda.set_rng_state(each, self.device)


def length(samples: int, config: Config) -> tuple[int, int]:
    """Steps and epochs of a run. A last batch of one sample is left out, for BatchNorm."""
    per_epoch = samples // config.batch_size + (samples % config.batch_size > 1)
    if per_epoch == 0:
        raise TstarError(f"At least 2 training samples are needed, but got {samples}.")
    steps = config.steps or config.epochs * per_epoch
    return steps, math.ceil(steps / per_epoch)


class Checkpoint:
    """The state of a run under way, from which it goes on bit for bit.

    One file, written whole every ``minutes``. Whoever stores the result removes it afterwards: a
    process that is killed in between loses nothing.
    """

    def __init__(self, path: str | Path, minutes: float) -> None:
        self.path, self.minutes = Path(path), minutes
        self._written = time.monotonic()

    def due(self) -> bool:
        return time.monotonic() - self._written >= 60 * self.minutes

    def save(self, state: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with written(self.path) as part:
            torch.save(state, part)
        self._written = time.monotonic()
