"""The optimizer and the learning rate over the steps of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tstar import own
from tstar.errors import TstarError
from tstar.numbers import number
from tstar.training.config import Config


def make_optimizer(module: nn.Module, config: Config) -> torch.optim.Optimizer:
    """SGD with momentum, Adam, AdamW or your own over every trainable parameter.

    Where torch has it, the fused step: one pass over the weights instead of one per operation. It takes
    weights and gradients in the order in which they lie, which autograd keeps the same.
    """
    parameters = [p for p in module.parameters() if p.requires_grad]
    fused = all(p.is_floating_point() and p.device.type in ("cpu", "cuda") for p in parameters)
    betas = (config.beta1, config.beta2)
    common: dict[str, Any] = {"lr": config.lr, "weight_decay": config.weight_decay, "fused": fused}
    if config.optimizer == "sgd":
        return torch.optim.SGD(
            parameters, momentum=config.momentum, nesterov=config.nesterov, **common
        )
    if config.optimizer in ("adam", "adamw"):
        kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
        return kind(parameters, betas=betas, **common)
    common |= {"momentum": config.momentum, "nesterov": config.nesterov, "betas": betas}
    del common["fused"]
    made = own.call(config.optimizer, own.load(config.optimizer), parameters, **common)
    if not isinstance(made, torch.optim.Optimizer):
        raise TstarError(
            f"{config.optimizer} must return a torch optimizer, got {type(made).__name__}."
        )
    return made


def schedule(config: Config) -> Callable[[int, int], float]:
    """What gives the factor on the learning rate; one of your own is imported once for the whole run."""
    if not own.is_reference(config.schedule):
        return lambda step, steps: lr_factor(step, steps, config)
    function = own.load(config.schedule)

    def factor(step: int, steps: int) -> float:
        value = own.call(config.schedule, function, step, steps)
        return number(f"What {config.schedule} returns", value)

    return factor


def lr_factor(step: int, steps: int, config: Config) -> float:
    """The schedule, one of tstar's, as a factor on the learning rate at ``step`` (from 0) of ``steps``.

    cosine: ½(1 + cos πt), linear: 1 − t, constant: 1, with t the share of the steps after the
    warm-up that are done; during the warm-up the factor rises linearly to 1. one-cycle: along a cosine from
    1/25 to 1 in three tenths of the steps and to 1/250,000 in the rest (torch's ``OneCycleLR``, momentum constant).
    """
    if config.schedule == "one-cycle":
        return _one_cycle(step, steps)
    warm = round(config.warmup * steps)
    if step < warm:
        return (step + 1) / warm
    t = (step - warm) / (steps - warm)
    return {"cosine": 0.5 * (1 + math.cos(math.pi * t)), "linear": 1 - t, "constant": 1.0}[
        config.schedule
    ]


def _one_cycle(step: int, steps: int) -> float:
    start, end = 1 / 25, 1 / 250_000
    peak, last = max(0.3 * steps - 1, 1e-9), steps - 1
    if step <= peak:
        return start + (1 - start) * 0.5 * (1 - math.cos(math.pi * step / peak))
    return end + (1 - end) * 0.5 * (1 + math.cos(math.pi * (step - peak) / (last - peak)))
