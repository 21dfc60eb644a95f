"""Logit standardization: distillation on standardized logits."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from tstar.methods.common import Plain, cross_entropy, plain_copy
from tstar.methods.distilling import Teacher, divergence
from tstar.methods.interface import Facts, Recipe
from tstar.numbers import positive


def standardize(logits: Tensor) -> Tensor:
    """Z(z) = (z − mean_k z)/(1e-7 + std_k z) for each sample, with the unbiased std."""
    centered = logits - logits.mean(dim=1, keepdim=True)
    return centered / (1e-7 + logits.std(dim=1, keepdim=True))


@dataclass(frozen=True)
class LogitStandardization(Plain):
    r"""L = w_ce·CE(z_s, y) + w_kd·τ²·KL(softmax(Z(z_t)/τ) ‖ softmax(Z(z_s)/τ)).

    Z standardizes a sample's logits, for teacher and student, which makes each sample's own spread
    its temperature.

    Reference: Sun et al. 2024, "Logit Standardization in Knowledge Distillation"; τ = 2, 0.1 and 9 (S).
    """

    tau: float = 2.0
    ce_weight: float = 0.1
    kd_weight: float = 9.0
    name = "logit-standardization"
    needs = frozenset({"teacher"})

    def __post_init__(self) -> None:
        for field in ("tau", "ce_weight", "kd_weight"):
            positive(field, getattr(self, field))

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        teacher, hard = Teacher(self, facts), cross_entropy(facts)

        def loss(logits: Tensor, targets: Tensor, inputs: Tensor) -> Tensor:
            soft = divergence(standardize(logits), standardize(teacher(inputs)), self.tau)
            return self.ce_weight * hard(logits, targets, inputs) + self.kd_weight * soft

        recipe = plain_copy(model, facts)
        recipe.loss = loss
        return recipe
