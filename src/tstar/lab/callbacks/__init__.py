"""An advice and a temperature schedule in a trainer that owns the loop.

Lightning's and transformers'. Each module has the same two callbacks:

- ``AdviceCallback(advice)`` applies an advice at the start (``advice.apply``). With ``fold=True`` it
  also folds the model at the end; checkpoints of the training then no longer load into it.
- ``TemperatureCallback(schedule, every)`` sets the tempered heads to the schedule's T before each
  ``"epoch"`` or ``"step"``, and logs it. The step is the trainer's own count of optimizer steps, so
  that accumulated gradients count once and a resumed run goes on at the right temperature.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from tstar.errors import TstarError
from tstar.output_layer import unwrap


def part_for(advice: Any, model: nn.Module) -> nn.Module:
    """The part of a trainer's module that an advice is for: the first that has its output layers."""
    shape = (advice.case.num_classes, advice.case.num_features)
    for part in unwrap(model).modules():
        try:
            layers: list[Any] = [part.get_submodule(path) for path in advice.heads]
        except AttributeError:
            continue
        weights = [getattr(layer, "weight", None) for layer in layers]
        if weights[0] is not None and tuple(weights[0].shape[:2]) == shape:
            return part
    raise TstarError(
        "The trainer's module must hold the model that the advice is for, got one without "
        f"{advice.heads[0]!r} of {shape[0]} classes and {shape[1]} features; call tstar.recommend "
        "with the model that you train."
    )
