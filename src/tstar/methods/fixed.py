"""Fixed temperature: train at a T that you choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import nn

from tstar.head import Norm
from tstar.methods.common import Plain, at_temperature, positive
from tstar.methods.interface import Facts, Recipe


@dataclass(frozen=True)
class Fixed(Plain):
    r"""L = CE(z/T, y) at a given T, for sweeps and for those who know better.

    Args:
        temperature: T > 0.
        norm: ``"batch"`` inserts the paper's BatchNorm before the output layer, ``"none"`` nothing.
        name: what the method is called in tables.
    """

    temperature: float = 1.0
    norm: Literal["batch", "layer", "none"] = "none"
    name: str = "fixed"

    def __post_init__(self) -> None:
        positive("temperature", self.temperature)

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        norm: Norm | None = None if self.norm == "none" else self.norm
        return at_temperature(model, self.temperature, facts, norm)
