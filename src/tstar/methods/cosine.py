"""Heads with unit-norm weights: the cosine classifier, and heated-up softmax's."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tstar.surgery.head import batch_norm
from tstar.surgery.layers import class_dim, weight_of


class UnitHead(nn.Module):
    r"""z = (w_k/‖w_k‖)·g(h) / T, without bias; g(h) = h/‖h‖ (cosine) or BatchNorm(h) (heated-up).

    The raw rows start as those of the layer that it replaces. ``temperature`` is a buffer, as in a
    tempered head, so that a schedule can drive it. There is nothing to fold: the weights stay
    normalized for as long as they train, and a cosine divides by the sample's own norm.
    """

    temperature: Tensor

    def __init__(self, layer: nn.Module, temperature: float, features: str) -> None:
        super().__init__()
        weight = weight_of(layer).flatten(1)
        self.weight = nn.Parameter(weight.detach().clone())
        self.norm: nn.BatchNorm1d | None = None
        if features == "batch":
            self.norm = nn.BatchNorm1d(weight.shape[1], device=weight.device, dtype=weight.dtype)
        self.register_buffer("temperature", torch.tensor(temperature, device=weight.device))
        self._dim = class_dim(layer)

    def set_temperature(self, temperature: float) -> None:
        self.temperature.fill_(temperature)

    def forward(self, features: Tensor) -> Tensor:
        h = features.movedim(self._dim, -1)
        logits = F.linear(self._normalized(h), F.normalize(self.weight, dim=-1))
        return (logits / self.temperature).movedim(-1, self._dim)

    def _normalized(self, h: Tensor) -> Tensor:
        if self.norm is None:
            return F.normalize(h, dim=-1)
        return batch_norm(self.norm, h.reshape(-1, h.shape[-1])).reshape(h.shape)

    def extra_repr(self) -> str:
        return f"classes={len(self.weight)}, temperature={float(self.temperature):.4g}"
