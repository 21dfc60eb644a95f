"""Knowledge distillation at a fixed temperature."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from tstar.methods.common import Plain, cross_entropy, plain_copy
from tstar.methods.distilling import Teacher, divergence
from tstar.methods.interface import Facts, Recipe
from tstar.numbers import positive


@dataclass(frozen=True)
class KD(Plain):
    r"""L = w_ce·CE(z_s, y) + w_kd·τ²·KL(softmax(z_t/τ) ‖ softmax(z_s/τ)).

    The teacher is frozen and in eval mode; KL is summed over classes, the mean over the batch. As
    τ → ∞ the second term's gradient becomes that of matching the centered logits, (z_s − z_t)/K.

    Reference: Hinton, Vinyals & Dean 2015; τ = 4, 0.1 and 0.9 as in mdistiller (S).
    """

    tau: float = 4.0
    ce_weight: float = 0.1
    kd_weight: float = 0.9
    name = "kd"
    needs = frozenset({"teacher"})

    def __post_init__(self) -> None:
        for field in ("tau", "ce_weight", "kd_weight"):
            positive(field, getattr(self, field))

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        teacher, hard = Teacher(self, facts), cross_entropy(facts)

        def loss(logits: Tensor, targets: Tensor, inputs: Tensor) -> Tensor:
            soft = divergence(logits, teacher(inputs), self.tau)
            return self.ce_weight * hard(logits, targets, inputs) + self.kd_weight * soft

        recipe = plain_copy(model, facts)
        recipe.loss = loss
        return recipe
