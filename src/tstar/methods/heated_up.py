"""Heated-up softmax: unit-norm weights on BN'd features, and a higher temperature at the end."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from tstar.formula.rules import heated_up
from tstar.methods.common import Plain, cross_entropy, with_output_layer
from tstar.methods.cosine import UnitHead
from tstar.methods.interface import Facts, Recipe
from tstar.surgery.schedule import Schedule


@dataclass(frozen=True)
class HeatedUp(Plain):
    r"""L = CE(α·ŵ_k·BN(h), y), ŵ_k = w_k/‖w_k‖, α = 16/sqrt(M), so T = sqrt(M)/16; then 4·T.

    The last quarter of the epochs runs at 4·T and a tenth of the learning rate.

    Reference: Zhang et al. 2018, "Heated-Up Softmax Embedding" (S).
    """

    name = "heated-up"

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        T = heated_up(facts.num_features)
        changed = with_output_layer(model, facts, lambda layer: UnitHead(layer, T, "batch"))
        heated = Schedule.stepped(T, {1: 4.0}).drive(changed)  # two phases: cool 0, hot 1

        def on_epoch(epoch: int, epochs: int) -> float:
            hot = 4 * (epoch - 1) >= 3 * epochs
            heated.go_to(int(hot))
            return 0.1 if hot else 1.0

        return Recipe(model=changed, loss=cross_entropy(facts), on_epoch=on_epoch)
