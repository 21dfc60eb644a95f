"""Default: softmax(z) at T = 1, nothing changed."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from tstar.methods.common import Plain, plain_copy
from tstar.methods.interface import Facts, Recipe


@dataclass(frozen=True)
class Default(Plain):
    r"""L = CE(z, y): the model as it is, T = 1, no norm inserted.

    Reference: the paper's baseline row "T = 1" (S).
    """

    name = "default"

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        return plain_copy(model, facts)
