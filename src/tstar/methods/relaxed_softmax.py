"""Relaxed softmax: an inverse temperature for each sample, as an extra output of the network."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tstar.methods.common import Plain, cross_entropy, with_output_layer
from tstar.methods.interface import Facts, Recipe
from tstar.surgery.layers import class_dim, weight_of

_FLOOR = 1e-6
_ONE = math.log(math.e - 1)  # softplus of this is 1


class RelaxedHead(nn.Module):
    """α(h)·z(h) with α(h) = softplus(v·h + c) + 1e-6; at the start v = 0 and α = 1."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        weight = weight_of(layer)
        self.layer = layer
        # Without the usual initialization, which would draw from the caller's generator.
        self.alpha: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
            nn.Linear, weight.shape[1], 1, device=weight.device, dtype=weight.dtype
        )
        with torch.no_grad():
            self.alpha.weight.zero_()
            self.alpha.bias.fill_(_ONE)
        self._dim = class_dim(layer)

    def inverse_temperature(self, features: Tensor) -> Tensor:
        """α > 0, of shape (B, 1), or (B, 1, …) for a convolution."""
        u = self.alpha(features.movedim(self._dim, -1)).movedim(-1, self._dim)
        return F.softplus(u) + _FLOOR

    def forward(self, features: Tensor) -> Tensor:
        logits: Tensor = self.layer(features)
        return self.inverse_temperature(features) * logits


@dataclass(frozen=True)
class RelaxedSoftmax(Plain):
    r"""L = CE(α(x)·z, y), α(x) > 0 an extra output of the network, trained jointly.

    α = softplus(u) + 1e-6, u = v·h + c with v = 0 and c = ln(e − 1) at the start, so that α = 1.

    Reference: Neumann, Zisserman & Vedaldi 2018, "Relaxed Softmax" (S). How α is kept positive, and
    its start, are ours.
    """

    name = "relaxed-softmax"

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        return Recipe(model=with_output_layer(model, facts, RelaxedHead), loss=cross_entropy(facts))
