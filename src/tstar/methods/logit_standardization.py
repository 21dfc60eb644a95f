"""Logit standardization: distillation on standardized logits."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from tstar.methods.distilling import Distillation, divergence
from tstar.methods.interface import Facts, Recipe


def standardize(logits: Tensor) -> Tensor:
    """Z(z) = (z − mean_k z)/(1e-7 + std_k z) for each sample, with the unbiased std."""
    centered = logits - logits.mean(dim=1, keepdim=True)
    return centered / (1e-7 + logits.std(dim=1, keepdim=True))


@dataclass(frozen=True)
class LogitStandardization(Distillation):
    r"""L = w_ce·CE(z_s, y) + w_kd·τ²·KL(softmax(Z(z_t)/τ) ‖ softmax(Z(z_s)/τ)).

    Z standardizes a sample's logits, for teacher and student, which makes each sample's own spread
    its temperature.

    Reference: Sun et al. 2024, "Logit Standardization in Knowledge Distillation"; τ = 2, 0.1 and 9 (S).
    """

    kd_weight: float = 9.0
    tau: float = 2.0
    name = "logit-standardization"

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        def soft(z_s: Tensor, z_t: Tensor) -> Tensor:
            return divergence(standardize(z_s), standardize(z_t), self.tau)

        return self.distilled(model, facts, soft)
