"""Learned temperature: the logarithm of a logit scale, trained with the network and clamped."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tstar.errors import TstarError
from tstar.methods.common import Plain, cross_entropy, with_output_layer
from tstar.methods.interface import Facts, Recipe
from tstar.numbers import positive
from tstar.surgery.layers import weight_of


class LearnedHead(nn.Module):
    """exp(s)·z(h), s a parameter that is kept in [ln lowest, ln highest]."""

    def __init__(self, layer: nn.Module, start: float, lowest: float, highest: float) -> None:
        super().__init__()
        weight = weight_of(layer)
        self.layer = layer
        self.bounds = (math.log(lowest), math.log(highest))
        value = torch.tensor(math.log(start), device=weight.device, dtype=weight.dtype)
        self.log_scale = nn.Parameter(value)

    def forward(self, features: Tensor) -> Tensor:
        # The parameter itself is clamped, as CLIP does: a clamp in the graph would have no gradient
        # outside the bounds, and the scale would never come back.
        with torch.no_grad():
            self.log_scale.clamp_(*self.bounds)
        logits: Tensor = self.layer(features)
        return logits * self.log_scale.exp()

    def extra_repr(self) -> str:
        return f"temperature={math.exp(-self.log_scale.item()):.4g}"


@dataclass(frozen=True)
class LearnedTemperature(Plain):
    r"""L = CE(exp(s)·z, y), s trained jointly, exp(s) = 1/T clamped to [lowest, highest].

    Reference: Radford et al. 2021, "CLIP": log-parametrized, clamped at 100 (S). The start at 1 and the
    lower bound 1/512 (the paper's highest temperature) are ours.
    """

    start: float = 1.0
    lowest: float = 1 / 512
    highest: float = 100.0
    name = "learned-temperature"

    def __post_init__(self) -> None:
        for field in ("start", "lowest", "highest"):
            positive(field, getattr(self, field))
        if not self.lowest <= self.start <= self.highest:
            raise TstarError(
                "lowest <= start <= highest must hold, but got "
                f"{self.lowest!r}, {self.start!r}, {self.highest!r}."
            )

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        def change(layer: nn.Module) -> nn.Module:
            return LearnedHead(layer, self.start, self.lowest, self.highest)

        changed = with_output_layer(model, facts, change)

        (head,) = (module for module in changed.modules() if isinstance(module, LearnedHead))

        def report() -> dict[str, float]:
            return {"temperature": math.exp(-head.log_scale.item())}

        return Recipe(model=changed, loss=cross_entropy(facts), report=report)
