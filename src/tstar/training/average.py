"""An exponential average of a model's weights over the steps of training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Average:
    """w̄ ← d·w̄ + (1 − d)·w after each step, with d = min(decay, (1 + step)/(10 + step)).

    Parameters and the running statistics of BatchNorm are averaged. The start of training, where the weights
    are still random, is forgotten soon, as the decay grows with the steps.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._live: dict[str, Tensor] = {
            name: value
            for name, value in model.state_dict(keep_vars=True).items()
            if isinstance(value, nn.Parameter) or ".running_" in f".{name}"
        }
        self.values = {name: value.detach().clone() for name, value in self._live.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        share = 1 - min(self.decay, (1 + step) / (10 + step))
        for name, value in self.values.items():
            value.lerp_(self._live[name].detach(), share)

    @torch.no_grad()
    def apply(self) -> None:
        """Put the average into the model, for good."""
        for name, value in self.values.items():
            self._live[name].copy_(value)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the model has the averaged weights."""
        kept = {name: value.detach().clone() for name, value in self._live.items()}
        self.apply()
        try:
            yield
        finally:
            with torch.no_grad():
                for name, value in kept.items():
                    self._live[name].copy_(value)
