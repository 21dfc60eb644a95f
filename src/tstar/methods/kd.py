"""Knowledge distillation at a fixed temperature."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from tstar.methods.distilling import Distillation, divergence
from tstar.methods.interface import Facts, Recipe


@dataclass(frozen=True)
class KD(Distillation):
    r"""L = w_ce·CE(z_s, y) + w_kd·τ²·KL(softmax(z_t/τ) ‖ softmax(z_s/τ)).

    The teacher is frozen and in eval mode; KL is summed over classes, the mean over the batch. As
    τ → ∞ the second term's gradient becomes that of matching the centered logits, (z_s − z_t)/K.

    Reference: Hinton, Vinyals & Dean 2015; τ = 4, 0.1 and 0.9 as in mdistiller (S).
    """

    tau: float = 4.0
    name = "kd"

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        return self.distilled(model, facts, lambda z_s, z_t: divergence(z_s, z_t, self.tau))
