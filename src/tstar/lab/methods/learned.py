"""Temperatures that training finds: a learned one, one per sample, and a LayerNorm's scale."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tstar.head import class_dim, weight_of
from tstar.lab.methods.common import with_head
from tstar.lab.models.layers import ChannelNorm
from tstar.lab.recipe import Recipe, Setting

BOUNDS = (math.log(1 / 512), math.log(100))
_ONE = math.log(math.e - 1)  # softplus of this is 1


class LearnedHead(nn.Module):
    """exp(s)·z(h), s a parameter that is kept in ``BOUNDS`` and starts at 0."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.log_scale = layer, nn.Parameter(weight_of(layer).new_tensor(0.0))

    def forward(self, features: Tensor) -> Tensor:
        # The parameter itself is clamped, as CLIP does: a clamp in the graph would have no gradient
        # outside the bounds, and the scale would never come back.
        with torch.no_grad():
            self.log_scale.clamp_(*BOUNDS)
        logits: Tensor = self.layer(features)
        return logits * self.log_scale.exp()


def learned_temperature(model: nn.Module, setting: Setting) -> Recipe:
    r"""L = CE(exp(s)·z, y), s trained jointly, exp(s) = 1/T clamped to [1/512, 100].

    Reference: Radford et al. 2021, "CLIP": log-parametrized, clamped at 100 (S). The start at 1 and
    the lower bound 1/512 (the paper's highest temperature) are ours.
    """
    recipe = with_head(model, setting, LearnedHead)
    (head,) = (m for m in recipe.model.modules() if isinstance(m, LearnedHead))
    recipe.report = lambda: {"temperature": math.exp(-head.log_scale.item())}
    return recipe


class RelaxedHead(nn.Module):
    """α(h)·z(h) with α(h) = softplus(v·h + c) + 1e-6; at the start v = 0 and α = 1."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        weight = weight_of(layer)
        self.layer, self._dim = layer, class_dim(layer)
        # Without the usual initialization, which would draw from the caller's generator.
        self.alpha: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
            nn.Linear, weight.shape[1], 1, device=weight.device, dtype=weight.dtype
        )
        nn.init.zeros_(self.alpha.weight)
        nn.init.constant_(self.alpha.bias, _ONE)

    def forward(self, features: Tensor) -> Tensor:
        u = self.alpha(features.movedim(self._dim, -1)).movedim(-1, self._dim)
        logits: Tensor = self.layer(features)
        return (F.softplus(u) + 1e-6) * logits


def relaxed_softmax(model: nn.Module, setting: Setting) -> Recipe:
    r"""L = CE(α(x)·z, y), α(x) > 0 an extra output of the network, trained jointly.

    α = softplus(u) + 1e-6, u = v·h + c with v = 0 and c = ln(e − 1) at the start: α = 1.

    Reference: Neumann, Zisserman & Vedaldi 2018, "Relaxed Softmax" (S). How α is kept positive,
    and its start, are ours.
    """
    return with_head(model, setting, RelaxedHead)


def insert_ln(model: nn.Module, setting: Setting, *, affine: bool = True) -> Recipe:
    r"""L = CE(LayerNorm_K(z), y), LayerNorm(z) = g ⊙ (z − mean z)/sqrt(var z + 1e-5) + c.

    Symbols: z (B, K) logits, mean and (biased) variance over a sample's K logits, g and c (K,) the
    trainable affine part. Without it the largest probability is capped, since the normalized logits
    cannot lie further apart than (sqrt(K−1), −1/sqrt(K−1), …): .881 for K = 2 (D).

    Reference: Hasegawa 2022, the paper's row "Insert LN"; the affine part is on there (S).
    """

    def change(layer: nn.Module) -> nn.Module:
        weight, kind = weight_of(layer), ChannelNorm if class_dim(layer) == 1 else nn.LayerNorm
        place: dict[str, Any] = {"device": weight.device, "dtype": weight.dtype}
        norm = kind(len(weight), elementwise_affine=affine, **place)
        return nn.Sequential(OrderedDict(layer=layer, norm=norm))

    return with_head(model, setting, change)
