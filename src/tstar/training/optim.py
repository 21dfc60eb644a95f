"""The optimiser and the learning rate over the steps of a run."""

from __future__ import annotations

import math

import torch
from torch import nn

from tstar.training.config import Config


def make_optimizer(module: nn.Module, config: Config) -> torch.optim.Optimizer:
    """SGD with momentum, Adam or AdamW over every trainable parameter."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    if config.optimizer == "sgd":
        return torch.optim.SGD(
            parameters, config.lr, momentum=config.momentum, weight_decay=config.weight_decay
        )
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(parameters, config.lr, weight_decay=config.weight_decay)


def lr_factor(step: int, steps: int, config: Config) -> float:
    """The schedule as a factor on the learning rate at ``step`` (from 0) of ``steps``.

    cosine: ½(1 + cos πt), linear: 1 − t, constant: 1, with t the share of the steps after the
    warm-up that are done; during the warm-up the factor rises linearly to 1.
    """
    warm = round(config.warmup * steps)
    if step < warm:
        return (step + 1) / warm
    t = (step - warm) / (steps - warm)
    return {"cosine": 0.5 * (1 + math.cos(math.pi * t)), "linear": 1 - t, "constant": 1.0}[
        config.schedule
    ]
