"""Advised: what ``tstar.recommend`` says for this training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from tstar.formula.training import SCHEDULES, Training
from tstar.methods.common import Plain, cross_entropy
from tstar.methods.interface import Facts, Recipe
from tstar.surgery.tempering import temper


@dataclass(frozen=True)
class Advised(Plain):
    r"""L = CE(z/T, y) with the T, norm and learning rate that :func:`tstar.recommend` advises for the run's training.

    With an optimizer of your own, which was not measured, the model is left as it is.
    """

    name = "advised"

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        from tstar.advice import recommend

        told: dict[str, Any] = {
            "label_smoothing": facts.label_smoothing,
            "scenario": facts.scenario,
            "samples": facts.samples,
        }
        config = facts.training
        if config is not None:
            names = ("lr", "momentum", "steps", "batch_size", "weight_decay")
            told |= {name: getattr(config, name) for name in names}
            # As a record, which may have any name: an unknown one is not measured, and none would be not told.
            told["optimizer"] = Training(config.optimizer)
            if config.schedule in SCHEDULES:  # of one of your own the usual is assumed
                told["scheduler"] = config.schedule
        advice = recommend(
            model, csg=facts.csg, num_classes=facts.num_classes, head=facts.head, **told
        )
        recipe = Recipe(temper(model, advice, head=facts.head, inplace=False), cross_entropy(facts))
        recipe.report = lambda: {"lr_factor": advice.lr_factor, "left": advice.leave}
        if advice.lr_factor != 1:
            recipe.on_epoch = lambda epoch, epochs: advice.lr_factor
        return recipe
