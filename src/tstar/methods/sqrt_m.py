"""The scaled dot-product rule, carried over to the classifier: T = sqrt(M)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from tstar.formula.rules import sqrt_m
from tstar.methods.common import Plain, at_temperature
from tstar.methods.interface import Facts, Recipe


@dataclass(frozen=True)
class SqrtM(Plain):
    r"""L = CE(z/sqrt(M), y), no norm inserted.

    Attention is softmax(QKᵀ/sqrt(d_k))V: with the features as the query and the rows of the output
    layer as the keys, the classifier's own row of that rule is T = sqrt(M).

    Reference: Vaswani et al. 2017, "Attention Is All You Need", eq. 1; the paper's row "T = sqrt(M)" (S).
    """

    name = "sqrt-m"

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        return at_temperature(model, sqrt_m(facts.num_features), facts, norm=None)
