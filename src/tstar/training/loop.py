"""The training loop, top to bottom: the data, the model, the epochs, the measurement of the last."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from tstar import own
from tstar.errors import TstarError
from tstar.methods.common import cross_entropy
from tstar.methods.interface import Facts, Recipe
from tstar.numbers import number
from tstar.training.average import Average
from tstar.training.checkpoint import Checkpoint
from tstar.training.config import Config
from tstar.training.layout import channels_last
from tstar.training.optim import make_optimizer, schedule
from tstar.training.parts import Parts, Samples, describe, make_parts
from tstar.training.scores import Scores, evaluate, predict

if TYPE_CHECKING:
    from tstar.data import DataSet

Progress = Callable[[int, int, Mapping[str, float]], None]
# Of a learning curve: longer trainings are measured after every second, third, … epoch.
MOST_POINTS = 250


@dataclass(frozen=True)
class Result:
    """What a run gave. Accuracies are shares in [0, 1], of the last epoch; losses are in nats.

    ``curves`` has one list per quantity, one number per epoch; trainings of very many epochs are measured
    after every second, third, … of them, and the list ``epoch`` says which. ``train_*`` are means over the
    epoch's augmented batches. ``val_*`` are ``None`` without a validation part; ``nll`` and ``ece`` are of the
    test set. All scores are ``None`` where ``status`` is ``"diverged"``. ``extra`` holds what
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

    def accuracies(self, num_classes: int) -> tuple[float | None, float | None]:
        """Of validation and test data; a run that diverged guesses: it counts as chance, 1/K."""
        if self.status == "diverged":
            return 1 / num_classes, 1 / num_classes
        return self.val_accuracy, self.test_accuracy


def train(
    model_or_recipe: nn.Module | Recipe,
    dataset: DataSet | Parts,
    config: Config | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> Result:
    """Train in place and measure; see :mod:`tstar.training`."""
    config = config or Config()
    recipe = _recipe(model_or_recipe, config)

    data = dataset if isinstance(dataset, Parts) else make_parts(dataset, config, seed)
    if recipe.finish is not None and not len(data.y_val):
        raise TstarError(
            "val_fraction > 0 must hold for a method that uses validation data, but got "
            f"val_fraction={config.val_fraction:g}; set it to 0.1, say."
        )
    model, extra = recipe.model.to(data.y.device), recipe.extra.to(data.y.device)
    with channels_last(model, images=data.x.dim() == 4):
        return _train(recipe, model, extra, data, config, seed, progress, checkpoint)


def _train(
    recipe: Recipe,
    model: nn.Module,
    extra: nn.ModuleList,
    data: Parts,
    config: Config,
    seed: int,
    progress: Progress | None,
    checkpoint: Checkpoint | None,
) -> Result:
    device = data.y.device
    forward: nn.Module = torch.compile(model) if config.compile else model  # type: ignore[assignment]
    trained = nn.ModuleList([model, extra])
    optimizer, scheduled = make_optimizer(trained, config), schedule(config)
    average = Average(model, config.ema) if config.ema else None
    metric = None if config.metric is None else _own_metric(config.metric)

    steps, epochs = length(len(data.y), config)
    every = math.ceil(epochs / MOST_POINTS)

    def measure(x: Samples, y: Tensor) -> tuple[Scores, dict[str, float]]:
        with nullcontext() if average is None else average.applied():
            logits = predict(forward, x, prepare=data.ready, amp=config.amp)
        # Of a diverged model nothing is asked.
        asked = metric is not None and bool(logits.isfinite().all())
        return evaluate(logits, y), {"metric": metric(logits, y)} if metric and asked else {}

    shuffling = torch.Generator().manual_seed(seed)
    distorting = torch.Generator().manual_seed(seed + 1)
    curves: dict[str, list[float]] = {}
    recorded: dict[str, Any] = {}
    was_training = model.training
    first, done, step, seen, diverged, started = 1, 0, 0, 0, False, time.perf_counter()
    # Summed where the model is: no waiting for a GPU at every step.
    loss_sum, correct = torch.zeros((), device=device), torch.zeros((), device=device)
    count, lr = 0, 0.0

    def snapshot() -> dict[str, Any]:
        numbers = (epoch, batch + 1, step, seen, count, lr, time.perf_counter() - started)
        return {
            "numbers": numbers,
            "sums": (loss_sum, correct),
            "curves": curves,
            "modules": trained.state_dict(),
            "optimizer": optimizer.state_dict(),
            "average": {} if average is None else average.values,
            "random": (order, distorting.get_state(), *_global_states(device)),
        }

    # Dropout and the like draw from the global generators: seeded here, restored afterwards.
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        state = None if checkpoint is None else checkpoint.load(device)
        if state is not None:
            first, done, step, seen, count, lr, before = state["numbers"]
            started -= before
            loss_sum, correct = state["sums"]
            curves = state["curves"]
            trained.load_state_dict(state["modules"])
            optimizer.load_state_dict(state["optimizer"])
            if average is not None:
                average.values = state["average"]
            shuffling.set_state(state["random"][0].cpu())
            distorting.set_state(state["random"][1].cpu())
            _restore_global(state["random"][2:], device)
        for epoch in range(first, epochs + 1):
            factor = 1.0 if recipe.on_epoch is None else recipe.on_epoch(epoch, epochs)
            model.train()
            order = shuffling.get_state()
            batches = torch.split(
                torch.randperm(len(data.y), generator=shuffling), config.batch_size
            )
            left = batches[done:]  # after the checkpoint
            read = zip(left, data.x.batches(left), strict=True)
            for batch, (rows, inputs) in enumerate(read, done):  # noqa: B007 (of the snapshot)
                if len(rows) == 1 or step == steps:
                    break
                rows = rows.to(device)
                inputs, targets = data.distorted(inputs, distorting), data.y[rows]
                mixed = _mixup(inputs, config.mixup, seed, step) if config.mixup else None
                if mixed is not None:
                    inputs = mixed[0]
                lr = config.lr * factor * scheduled(step, steps)
                for group in optimizer.param_groups:
                    group["lr"] = lr
                if recipe.on_batch is not None:
                    recipe.on_batch(model, inputs, targets, lr)
                with torch.autocast(device.type, dtype=torch.bfloat16, enabled=config.amp):
                    logits = _checked(forward(inputs), len(rows))
                    loss = recipe.loss(logits, targets, inputs)
                    if mixed is not None:
                        _, share, partner = mixed
                        other = recipe.loss(logits, targets[partner], inputs)
                        loss = share * loss + (1 - share) * other
                optimizer.zero_grad(set_to_none=True)
                torch.autograd.backward(loss)
                if config.clip_norm is not None:
                    nn.utils.clip_grad_norm_(trained.parameters(), config.clip_norm)
                optimizer.step()
                if average is not None:
                    average.update(step)
                loss_sum += loss.detach() * len(rows)
                correct += (logits.detach().argmax(1) == targets).sum()
                count += len(rows)
                step += 1
                # A method with a state of its own beside the modules is started anew instead.
                if checkpoint is not None and recipe.on_batch is None and checkpoint.due():
                    checkpoint.save(snapshot())
            seen += count
            record = {
                "lr": lr,
                "train_loss": float(loss_sum) / count,
                "train_accuracy": float(correct) / count,
            }
            if not math.isfinite(record["train_loss"]):
                diverged = True
                break
            done, count, lr = 0, 0, 0.0
            loss_sum, correct = torch.zeros_like(loss_sum), torch.zeros_like(correct)
            if epoch % every == 0 or epoch == epochs:
                if every > 1:
                    record["epoch"] = epoch
                if len(data.y_val):
                    val, own_val = measure(data.x_val, data.y_val)
                    record |= {"val_accuracy": val.accuracy, "val_loss": val.loss}
                    record |= {f"val_{name}": value for name, value in own_val.items()}
                if config.test_curve:
                    record["test_accuracy"] = measure(data.x_test, data.y_test)[0].accuracy
                for name, value in record.items():
                    curves.setdefault(name, []).append(value)
            if progress is not None:
                progress(epoch, epochs, record)
        seconds = time.perf_counter() - started
        if average is not None and not diverged:
            average.apply()
            average = None
        if recipe.finish is not None and not diverged:
            assert data.validation is not None
            recorded = {**recipe.finish(model, *data.validation)}
        if recipe.report is not None:
            recorded = {**recorded, **recipe.report()}

    # The measurement: the weights after the last epoch, never the best one.
    scores: dict[str, float] = {}
    test, own_test = measure(data.x_test, data.y_test)
    if diverged or not math.isfinite(test.loss):
        diverged = True
    else:
        scores = {"test_accuracy": test.accuracy, "nll": test.loss, "ece": test.ece}
        scores |= {name: curves[name][-1] for name in ("train_loss", "train_accuracy")}
        recorded |= own_test
        if len(data.y_val):
            # Already measured after the last epoch, unless the method has changed the model since.
            if recipe.finish is not None:
                val, own_val = measure(data.x_val, data.y_val)
            scores |= {"val_accuracy": val.accuracy, "val_loss": val.loss}
            recorded |= {f"val_{name}": value for name, value in own_val.items()}
    model.train(was_training)
    if checkpoint is not None:
        checkpoint.remove()
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


def _checked(logits: Any, samples: int) -> Tensor:
    """What a model returned, which must be logits."""
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != samples:
        raise TstarError(
            f"The model must return one tensor of logits, {samples}×K for a batch of {samples}, got {describe(logits)}."
        )
    return logits


def _mixup(inputs: Tensor, alpha: float, seed: int, step: int) -> tuple[Tensor, float, Tensor]:
    """λ·x + (1 − λ)·x[partner], λ and the partners; drawn from the seed and the step alone."""
    if not inputs.is_floating_point():
        raise TstarError("mixup mixes images, signals and vectors, not tokens; leave it out.")
    random = np.random.default_rng([seed, step])
    share = float(random.beta(alpha, alpha))
    partner = torch.from_numpy(random.permutation(len(inputs))).to(inputs.device)
    return share * inputs + (1 - share) * inputs[partner], share, partner


def _own_metric(reference: str) -> Callable[[Tensor, Tensor], float]:
    function = own.load(reference)

    def metric(logits: Tensor, targets: Tensor) -> float:
        value = own.call(reference, function, logits, targets)
        return number(f"What {reference} returns", value)

    return metric


def _global_states(device: torch.device) -> list[Tensor]:
    on = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *on]


def _restore_global(states: tuple[Tensor, ...], device: torch.device) -> None:
    torch.set_rng_state(states[0].cpu())
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1].cpu(), device)


def length(samples: int, config: Config) -> tuple[int, int]:
    """Steps and epochs of a run. A last batch of one sample is left out: BatchNorm cannot use it."""
    per_epoch = samples // config.batch_size + (samples % config.batch_size > 1)
    if per_epoch == 0:
        raise TstarError(f"At least 2 training samples are needed, but got {samples}.")
    steps = config.steps or config.epochs * per_epoch
    return steps, math.ceil(steps / per_epoch)


def _recipe(model_or_recipe: nn.Module | Recipe, config: Config) -> Recipe:
    """A model alone is trained with cross-entropy, or with the loss of your own."""
    if isinstance(model_or_recipe, Recipe):
        return model_or_recipe
    facts = Facts(0, 0, label_smoothing=config.label_smoothing, loss=config.loss)
    return Recipe(model_or_recipe, cross_entropy(facts))
