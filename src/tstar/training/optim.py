"""The optimiser and the learning rate over the steps of a run."""

from __future__ import annotations

import math

import torch
from torch import nn

from tstar.training.config import Config


def make_optimizer(module: nn.Module, config: Config) -> torch.optim.Optimizer:
    """SGD with momentum, Adam or AdamW over every trainable parameter.

    Where torch has it, the fused step: one pass over the weights instead of one an operation. It takes
    weights and gradients in the order in which they lie, which autograd keeps the same.
    """
    parameters = [p for p in module.parameters() if p.requires_grad]
    fused = all(p.is_floating_point() and p.device.type in ("cpu", "cuda") for p in parameters)
    lr, decay = config.lr, config.weight_decay
    if config.optimizer == "sgd":
        momentum = config.momentum
        return torch.optim.SGD(parameters, lr, momentum, weight_decay=decay, fused=fused)
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(parameters, lr, weight_decay=decay, fused=fused)


def lr_factor(step: int, steps: int, config: Config) -> float:
    """The schedule as a factor on the learning rate at ``step`` (from 0) of ``steps``.

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
