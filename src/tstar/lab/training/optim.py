"""The optimizer and the learning rate over the steps of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tstar.errors import number
from tstar.lab import own
from tstar.lab.training.config import Config


def make_optimizer(
    module: nn.Module, config: Config, head: nn.Module | None = None
) -> torch.optim.Optimizer:
    """SGD with momentum, Adam, AdamW or your own over every trainable parameter.

    The parameters of ``head`` are a group whose ``"factor"`` on the rate is ``head_lr``. The fused
    step takes weights and gradients in the order in which they lie, which autograd keeps the same.
    """
    parameters: list[Any] = [p for p in module.parameters() if p.requires_grad]
    fused = all(p.is_floating_point() and p.device.type in ("cpu", "cuda") for p in parameters)
    if head is not None and config.head_lr != 1:
        mine = {id(p) for p in head.parameters()}
        rest = [p for p in parameters if id(p) not in mine]
        of_head = [p for p in parameters if id(p) in mine]
        parameters = [{"params": rest}, {"params": of_head, "factor": config.head_lr}]
    common: dict[str, Any] = {"lr": config.lr, "weight_decay": config.weight_decay}
    momentum: dict[str, Any] = {"momentum": config.momentum, "nesterov": config.nesterov}
    betas: dict[str, Any] = {"betas": (config.beta1, config.beta2)}
    if config.optimizer == "sgd":
        return torch.optim.SGD(parameters, **momentum, **common, fused=fused)
    if config.optimizer in ("adam", "adamw"):
        kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
        return kind(parameters, **betas, **common, fused=fused)
    yours = own.bound(config.optimizer, torch.optim.Optimizer)
    made: torch.optim.Optimizer = yours(parameters, **common, **momentum, **betas)
    return made


def schedule(config: Config) -> Callable[[int, int], float]:
    """What gives the factor on the learning rate; your own is imported once for the whole run."""
    if not own.is_reference(config.schedule):
        return lambda step, steps: lr_factor(step, steps, config)
    yours = own.bound(config.schedule)
    return lambda step, steps: number(f"What {config.schedule} returns", yours(step, steps))


def lr_factor(step: int, steps: int, config: Config) -> float:
    """tstar's schedule as a factor on the learning rate at ``step`` (from 0) of ``steps``.

    cosine: ½(1 + cos πt), linear: 1 − t, constant: 1, with t the share of the steps after the
    warm-up that are done; during the warm-up the factor rises linearly to 1. one-cycle: along a
    cosine from 1/25 to 1 in three tenths of the steps, then to 1/250,000 (torch's ``OneCycleLR``).
    """
    if config.schedule == "one-cycle":
        start, end, peak, last = 1 / 25, 1 / 250_000, max(0.3 * steps - 1, 1e-9), steps - 1
        if step <= peak:
            return start + (1 - start) * 0.5 * (1 - math.cos(math.pi * step / peak))
        return end + (1 - end) * 0.5 * (1 + math.cos(math.pi * (step - peak) / (last - peak)))
    warm = round(config.warmup * steps)
    if step < warm:
        return (step + 1) / warm
    t = (step - warm) / (steps - warm)
    return {"cosine": 0.5 * (1 + math.cos(math.pi * t)), "linear": 1 - t, "constant": 1.0}[
        config.schedule
    ]
