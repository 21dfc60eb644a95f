"""Label smoothing: soft targets in place of one-hot ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import nn

from tstar.methods.common import Plain, plain_copy
from tstar.methods.interface import Facts, Method, Recipe
from tstar.numbers import share


@dataclass(frozen=True)
class LabelSmoothing(Plain):
    r"""y' = (1 − ε)·y + ε/K, at T = 1.

    The optimal logit gap is T·ln(1 + K(1 − ε)/ε): a temperature only rescales it (D).

    Reference: Szegedy et al. 2016; the paper's equation of label smoothing (S). ε = 0.1 (S).
    """

    epsilon: float = 0.1
    name = "label-smoothing"

    def __post_init__(self) -> None:
        share("epsilon", self.epsilon)

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        return plain_copy(model, replace(facts, label_smoothing=self.epsilon))


@dataclass(frozen=True)
class Smoothed:
    """Any method with smoothed labels, written ``"NAME+label-smoothing"``, as in the paper's table."""

    method: Method
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        share("epsilon", self.epsilon)

    @property
    def name(self) -> str:
        return f"{self.method.name}+label-smoothing"

    @property
    def needs(self) -> frozenset[str]:
        return self.method.needs

    def at(self, temperature: float) -> Method:
        """One training run of a searching method, with smoothed labels."""
        return replace(self, method=self.method.at(temperature))  # type: ignore[attr-defined]

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        return self.method.prepare(model, replace(facts, label_smoothing=self.epsilon))
