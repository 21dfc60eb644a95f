"""CTKD: a distillation temperature that is trained against the student, ever more so."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tstar.methods.distilling import Distillation, divergence
from tstar.methods.interface import Facts, Recipe
from tstar.surgery.head import scale_gradient


def reversal(epoch: int) -> float:
    """λ(e) = ½(1 + cos(π·min(e, 10)/10)) − 1, e from 1: from almost 0 down to −1."""
    return 0.5 * (1 + math.cos(math.pi * min(epoch, 10) / 10)) - 1


class AdversarialTemperature(nn.Module):
    """τ = 1 + 20·sigmoid(u), u₀ = 1, with ∂/∂u multiplied by ``factor`` (λ of the epoch)."""

    def __init__(self) -> None:
        super().__init__()
        self.u = nn.Parameter(torch.tensor(1.0))
        self.factor = reversal(1)

    def forward(self) -> Tensor:
        return 1 + 20 * torch.sigmoid(scale_gradient(self.u, self.u.new_tensor(self.factor)))


@dataclass(frozen=True)
class CTKD(Distillation):
    r"""L = w_ce·CE(z_s, y) + w_kd·τ²·KL(softmax(z_t/τ) ‖ softmax(z_s/τ)), τ = 1 + 20·sigmoid(u).

    The student descends L; u receives ∂L/∂u·λ(e), and since λ goes from 0 to −1 it climbs L, which
    makes the task harder as training goes on. u is trained by the student's own optimizer.

    Reference: Li et al. 2023, "Curriculum Temperature for Knowledge Distillation", the global
    temperature (S); u₀ = 1, 0.1 and 0.9, ten epochs for λ (S).
    """

    name = "ctkd"

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        parameter = next(model.parameters())
        tau = AdversarialTemperature().to(device=parameter.device, dtype=parameter.dtype)
        recipe = self.distilled(model, facts, lambda z_s, z_t: divergence(z_s, z_t, tau()))

        def on_epoch(epoch: int, epochs: int) -> float:
            tau.factor = reversal(epoch)
            return 1.0

        def report() -> dict[str, float]:
            return {"tau": tau().item()}

        recipe.on_epoch, recipe.report = on_epoch, report
        recipe.extra = nn.ModuleList([tau])
        return recipe
