"""The paper's method: BatchNorm before the output layer, and T* from the closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from torch import nn

from tstar.errors import unknown
from tstar.formula.equation import temperature
from tstar.methods.common import Plain, at_temperature, missing
from tstar.methods.interface import Facts, Recipe
from tstar.numbers import positive
from tstar.surgery.schedule import Schedule

Over = Literal["constant", "linear", "cosine", "warmup", "step"]


@dataclass(frozen=True)
class Ours(Plain):
    r"""L = CE(z/T*, y), z = W·BN(h) + b, T* the closed form of :mod:`tstar.formula.equation`.

    Reference: Hasegawa & Sakai; four coefficient sets, ``variant`` = base, csg, cn, csgcn (S).

    Args:
        variant: which set.
        schedule: how T moves over the epochs. ``"constant"`` is the paper's; the others reach T* at
            the last epoch (``"linear"``, ``"cosine"``, from ``start``), after a fifth of the epochs
            (``"warmup"``), or train at T*/4 for the first three quarters and at T* in the last
            (``"step"``, the shape of heated-up softmax). All but the constant are ours.
        start: the temperature of the first epoch for linear, cosine and warmup.
    """

    variant: Literal["base", "csg", "cn", "csgcn"] = "cn"
    schedule: Over = "constant"
    start: float = 1.0

    def __post_init__(self) -> None:
        if self.schedule not in get_args(Over):
            raise unknown("schedule", self.schedule, get_args(Over))
        positive("start", self.start)

    @property
    def name(self) -> str:
        return f"ours-{self.variant}" + (
            "" if self.schedule == "constant" else f":schedule={self.schedule}"
        )

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"csg"}) if "csg" in self.variant else frozenset()

    def temperature(self, facts: Facts) -> float:
        """T* for these facts."""
        if "csg" in self.variant and facts.csg is None:
            raise missing(
                self.name, "csg", "pass csg=… (see tstar.csg), or take 'ours-cn' or 'ours-base'."
            )
        return temperature(facts.num_features, facts.num_classes, facts.csg, variant=self.variant)

    def over_time(self, target: float, epochs: int) -> Schedule:
        """The schedule over ``epochs`` values, the first for epoch 1 and the last for the last."""
        last = max(epochs - 1, 1)
        if self.schedule == "linear":
            return Schedule.linear(self.start, target, last)
        if self.schedule == "cosine":
            return Schedule.cosine(self.start, target, last)
        if self.schedule == "warmup":
            return Schedule.warmup(target, max(epochs // 5, 1), start=self.start)
        if self.schedule == "step":
            return Schedule.stepped(target / 4, {3 * epochs // 4: 4.0})
        return Schedule.constant(target)

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        target = self.temperature(facts)
        recipe = at_temperature(model, target, facts, norm="batch")
        if self.schedule != "constant":
            schedule = self.over_time(target, facts.epochs).drive(recipe.model)

            def on_epoch(epoch: int, epochs: int) -> float:
                schedule.go_to(epoch - 1)
                return 1.0

            recipe.on_epoch = on_epoch
        return recipe
