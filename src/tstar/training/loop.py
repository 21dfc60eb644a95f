"""The training loop, top to bottom: the data, the model, the epochs, the measurement of the last."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tstar.errors import TstarError
from tstar.methods.interface import Recipe
from tstar.training.config import Config
from tstar.training.layout import channels_last
from tstar.training.optim import lr_factor, make_optimizer
from tstar.training.parts import Parts, make_parts
from tstar.training.scores import Scores, evaluate, predict

if TYPE_CHECKING:
    from tstar.data import DataSet

Progress = Callable[[int, int, Mapping[str, float]], None]


@dataclass(frozen=True)
class Result:
    """What a run gave. Accuracies are shares in [0, 1], of the last epoch; losses are in nats.

    ``curves`` has one list a quantity, one number an epoch; ``train_*`` are means over the epoch's
    augmented batches. ``val_*`` are ``None`` without a validation part; ``nll`` and ``ece`` are of
    the test set. All scores are ``None`` where ``status`` is ``"diverged"``. ``extra`` holds what
    the method recorded.
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
    dataset: DataSet,
    config: Config | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Train in place and measure; see :mod:`tstar.training`."""
    config = config or Config()
    recipe = _recipe(model_or_recipe, config)

    # The data, all of it in memory.
    data = make_parts(dataset, config, seed)
    if recipe.finish is not None and data.validation is None:
        raise TstarError(
            "val_fraction > 0 must hold for a method that uses validation data, but got "
            f"val_fraction={config.val_fraction:g}; set it to 0.1, say."
        )

    # The model.
    model, extra = recipe.model.to(data.x.device), recipe.extra.to(data.x.device)
    with channels_last(model, images=data.x.dim() == 4):
        return _train(recipe, model, extra, data, config, seed, progress)


def _train(
    recipe: Recipe,
    model: nn.Module,
    extra: nn.ModuleList,
    data: Parts,
    config: Config,
    seed: int,
    progress: Progress | None,
) -> Result:
    device = data.x.device
    forward: nn.Module = torch.compile(model) if config.compile else model  # type: ignore[assignment]
    optimizer = make_optimizer(nn.ModuleList([model, extra]), config)

    steps, epochs = length(len(data.y), config)

    def measure(x: Tensor, y: Tensor) -> Scores:
        return evaluate(predict(forward, x, prepare=data.ready, amp=config.amp), y)

    shuffling = torch.Generator().manual_seed(seed)
    distorting = torch.Generator().manual_seed(seed + 1)
    curves: dict[str, list[float]] = {}
    recorded: Mapping[str, Any] = {}
    was_training = model.training
    step, seen, diverged, started = 0, 0, False, time.perf_counter()

    # Dropout and the like draw from the global generators: seeded here, restored afterwards.
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        for epoch in range(1, epochs + 1):
            factor = 1.0 if recipe.on_epoch is None else recipe.on_epoch(epoch, epochs)
            model.train()
            # Summed where the model is: no waiting for a GPU at every step.
            loss_sum, correct = torch.zeros((), device=device), torch.zeros((), device=device)
            count, lr = 0, 0.0
            for rows in torch.split(
                torch.randperm(len(data.y), generator=shuffling), config.batch_size
            ):
                if len(rows) == 1 or step == steps:
                    break
                rows = rows.to(device)
                inputs, targets = data.distorted(data.x[rows], distorting), data.y[rows]
                lr = config.lr * factor * lr_factor(step, steps, config)
                for group in optimizer.param_groups:
                    group["lr"] = lr
                if recipe.on_batch is not None:
                    recipe.on_batch(model, inputs, targets, lr)
                with torch.autocast(device.type, dtype=torch.bfloat16, enabled=config.amp):
                    logits = forward(inputs)
                    loss = recipe.loss(logits, targets, inputs)
                optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward(loss)
                optimizer.step()
                loss_sum += loss.detach() * len(rows)
                correct += (logits.detach().argmax(1) == targets).sum()
                count += len(rows)
                step += 1
            seen += count
            record = {
                "lr": lr,
                "train_loss": float(loss_sum) / count,
                "train_accuracy": float(correct) / count,
            }
            if not math.isfinite(record["train_loss"]):
                diverged = True
                break
            if len(data.y_val):
                val = measure(data.x_val, data.y_val)
                record |= {"val_accuracy": val.accuracy, "val_loss": val.loss}
            if config.test_curve:
                record["test_accuracy"] = measure(data.x_test, data.y_test).accuracy
            for name, value in record.items():
                curves.setdefault(name, []).append(value)
            if progress is not None:
                progress(epoch, epochs, record)
        seconds = time.perf_counter() - started
        if recipe.finish is not None and not diverged:
            assert data.validation is not None
            recorded = recipe.finish(model, *data.validation)
        if recipe.report is not None:
            recorded = {**recorded, **recipe.report()}

    # The measurement: the weights after the last epoch, never the best one.
    scores: dict[str, float] = {}
    test = measure(data.x_test, data.y_test)
    if diverged or not math.isfinite(test.loss):
        diverged = True
    else:
        scores = {"test_accuracy": test.accuracy, "nll": test.loss, "ece": test.ece}
        scores |= {name: curves[name][-1] for name in ("train_loss", "train_accuracy")}
        if len(data.y_val):
            # Already measured after the last epoch, unless the method has changed the model since.
            if recipe.finish is not None:
                val = measure(data.x_val, data.y_val)
            scores |= {"val_accuracy": val.accuracy, "val_loss": val.loss}
    model.train(was_training)
    return Result(
        status="diverged" if diverged else "done",
        epochs=epochs,
        steps=step,
        seconds=seconds,
        images_per_second=seen / seconds,
        curves=curves,
        extra=recorded,
        **scores,
    )


def length(samples: int, config: Config) -> tuple[int, int]:
    """Steps and epochs of a run. A last batch of one sample is left out: BatchNorm cannot use it."""
    per_epoch = samples // config.batch_size + (samples % config.batch_size > 1)
    if per_epoch == 0:
        raise TstarError(f"At least 2 training samples are needed, but got {samples}.")
    steps = config.steps or config.epochs * per_epoch
    return steps, math.ceil(steps / per_epoch)


def _recipe(model_or_recipe: nn.Module | Recipe, config: Config) -> Recipe:
    """A model alone is trained with cross-entropy."""
    if isinstance(model_or_recipe, Recipe):
        return model_or_recipe

    def cross_entropy(logits: Tensor, targets: Tensor, inputs: Tensor) -> Tensor:
        return F.cross_entropy(logits, targets, label_smoothing=config.label_smoothing)

    return Recipe(model_or_recipe, cross_entropy)
