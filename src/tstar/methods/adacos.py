"""AdaCos, fixed: a cosine classifier with the scale s = sqrt(2)·ln(K − 1)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from tstar.formula.rules import adacos_scale
from tstar.methods.common import Plain, cross_entropy, with_output_layer
from tstar.methods.cosine import UnitHead
from tstar.methods.interface import Facts, Recipe


@dataclass(frozen=True)
class AdaCosFixed(Plain):
    r"""L = CE(s·cos(w_k, h), y) with s = sqrt(2)·ln(K − 1); refused at K = 2, where s = 0.

    As a temperature on the common axis: r·sqrt(M)/s, see :mod:`tstar.formula.rules`.

    Reference: Zhang et al. 2019, "AdaCos", the fixed scale (S).
    """

    name = "adacos-fixed"

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        T = 1 / adacos_scale(facts.num_classes)
        changed = with_output_layer(model, facts, lambda layer: UnitHead(layer, T, "cosine"))
        return Recipe(model=changed, loss=cross_entropy(facts))
