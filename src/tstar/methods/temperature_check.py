"""Temperature check: train at several inverse temperatures, keep the best on validation data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from torch import nn

from tstar.errors import TstarError, unknown
from tstar.methods.fixed import Fixed
from tstar.methods.interface import Facts, Method, Recipe
from tstar.numbers import positive, whole

SAMPLERS = ("grid", "tpe", "gp", "random", "qmc")


@dataclass(frozen=True)
class TemperatureCheck:
    r"""L = CE(β·z, y), β = 1/T fixed during training; the β of best validation accuracy is kept.

    The grid is log-spaced over β = 1e-2 … 1e1. Each candidate is a training run, which is the
    method's cost. The other samplers (Optuna's, over ln T in the same range) take ``points`` runs too,
    chosen one after the other, so that fewer can do.

    Reference: Agarwala et al. 2020, "Temperature check" (S); the spacing and seven points are ours.

    Args:
        points: how many training runs.
        lowest, highest: the range of β.
        sampler: ``"grid"``, or Optuna's ``"tpe"``, ``"gp"``, ``"random"`` or ``"qmc"``.
    """

    points: int = 7
    lowest: float = 1e-2
    highest: float = 1e1
    sampler: Literal["grid", "tpe", "gp", "random", "qmc"] = "grid"
    name = "temperature-check"
    needs = frozenset({"validation"})

    def __post_init__(self) -> None:
        whole("points", self.points, least=2)
        if not positive("lowest", self.lowest) < positive("highest", self.highest):
            raise TstarError(
                f"lowest < highest must hold for β, but got {self.lowest} and {self.highest}."
            )
        if self.sampler not in SAMPLERS:
            raise unknown("sampler", self.sampler, SAMPLERS)

    @property
    def candidates(self) -> tuple[float, ...]:
        """The grid's temperatures 1/β, from the highest to the lowest; none for another sampler."""
        if self.sampler != "grid":
            return ()
        low, high = math.log(self.lowest), math.log(self.highest)
        step = (high - low) / (self.points - 1)
        return tuple(math.exp(-(low + step * i)) for i in range(self.points))

    def at(self, temperature: float) -> Method:
        """One training run: CE(z/T) at this candidate."""
        return Fixed(temperature, name=f"{self.name} (T = {temperature:.4g})")

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        raise TstarError(
            f"Method {self.name!r} is a search of {self.points} training runs, not one run; use "
            "tstar.methods.search, or prepare method.at(T) for one candidate."
        )
