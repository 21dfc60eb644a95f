"""NormFace bound: a cosine classifier with the smallest scale that can reach probability P."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from tstar.formula.rules import normface_scale
from tstar.methods.common import Plain, cross_entropy, with_output_layer
from tstar.methods.cosine import UnitHead
from tstar.methods.interface import Facts, Recipe


@dataclass(frozen=True)
class NormFaceBound(Plain):
    r"""L = CE(s·cos(w_k, h), y) with s = (K−1)/K·ln((K−1)·P/(1−P)), P = 0.99.

    As a temperature on the common axis: r·sqrt(M)/s, see :mod:`tstar.formula.rules`.

    Reference: Wang et al. 2017, "NormFace"; Wang et al. 2018, "CosFace", the bound on s (S). That the
    bound itself is taken as the scale, and P = 0.99, are ours.
    """

    probability: float = 0.99
    name = "normface-bound"

    def __post_init__(self) -> None:
        normface_scale(10, self.probability)

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        T = 1 / normface_scale(facts.num_classes, self.probability)
        changed = with_output_layer(model, facts, lambda layer: UnitHead(layer, T, "cosine"))
        return Recipe(model=changed, loss=cross_entropy(facts))
