"""How long a training step takes here, from a few steps on a throwaway copy."""

from __future__ import annotations

import copy
import time

import torch
from torch import nn
from torch.nn import functional as F

from tstar.training.config import Config
from tstar.training.layout import channels_last
from tstar.training.optim import make_optimizer
from tstar.training.parts import Parts

# A forward pass is about a third of a training step (forward, and backward at twice its cost).
FORWARD = 1 / 3
_STEPS = 3


def step_seconds(model: nn.Module, parts: Parts, config: Config) -> float:
    """Seconds per step, after one to warm up. The model and the random generators stay as they are."""
    generator = torch.Generator().manual_seed(0)
    rows = (torch.arange(config.batch_size) % len(parts.y)).to(parts.y.device)
    started = 0.0
    with torch.random.fork_rng(devices=[]):
        probe = copy.deepcopy(model).to(parts.y.device).train()
        optimizer = make_optimizer(probe, config)
        with channels_last(probe, images=parts.x.dim() == 4):
            for step in range(_STEPS + 1):
                if step == 1:
                    started = time.perf_counter()
                inputs = parts.distorted(parts.x[rows], generator)
                with torch.autocast(inputs.device.type, torch.bfloat16, enabled=config.amp):
                    loss = F.cross_entropy(probe(inputs), parts.y[rows])
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                optimizer.step()
                float(loss.detach())  # waits for an accelerator
    return (time.perf_counter() - started) / _STEPS
