"""An advice and a temperature schedule in a trainer that owns the loop.

Lightning's and transformers'. Each module has the same two callbacks:

- ``AdviceCallback(advice)`` applies an advice at the start (``advice.apply``), and folds it away at
  the end, unless ``fold=False``.
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
    """The part of a trainer's module that an advice is for: the one that has its output layers."""
    alike = []
    for part in unwrap(model).modules():
        try:
            layers: list[Any] = [part.get_submodule(head.path) for head in advice.heads]
        except AttributeError:
            continue
        pairs = list(zip(layers, advice.heads, strict=True))
        if any(b.layer in (a, getattr(a, "layer", None)) for a, b in pairs):
            return part
        if all(getattr(a, "weight", a).shape == b.layer.weight.shape for a, b in pairs):
            alike.append(part)
    if not alike:
        raise TstarError(
            "The trainer's module must hold the model that the advice is for, got one without "
            f"{advice.heads[0]}; call tstar.recommend with the model that you train."
        )
    return alike[0]
