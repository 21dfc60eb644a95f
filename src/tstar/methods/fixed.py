"""Fixed temperature: train at a T that you choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from torch import nn

from tstar.errors import unknown
from tstar.methods.common import Backbone, Plain, at_temperature
from tstar.methods.interface import Facts, Recipe
from tstar.numbers import positive
from tstar.surgery.head import Norm


@dataclass(frozen=True)
class Fixed(Plain):
    r"""L = CE(z/T, y) at a given T, for sweeps and for those who know better.

    Args:
        temperature: T > 0.
        norm: ``"batch"`` inserts the paper's BatchNorm before the output layer, ``None`` (in files ``"none"``) nothing.
        backbone: the gradient into the backbone: ``"as-is"`` (divided by T, and by σ with BN), ``"times-t"``
            (multiplied by T) or ``"matched"`` (as large as the plain model's, measured on one batch).
        name: what the method is called in tables.
    """

    temperature: float = 1.0
    norm: Norm | Literal["none"] | None = None
    backbone: Backbone = "as-is"
    name: str = "fixed"

    def __post_init__(self) -> None:
        if self.norm == "none":  # TOML has no None: the one place where its word is read
            object.__setattr__(self, "norm", None)
        positive("temperature", self.temperature)
        if self.backbone not in get_args(Backbone):
            raise unknown("backbone", self.backbone, get_args(Backbone))

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        assert self.norm != "none"
        return at_temperature(model, self.temperature, facts, self.norm, self.backbone)
