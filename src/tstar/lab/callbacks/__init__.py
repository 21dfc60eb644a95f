"""An advice and a temperature schedule in a trainer that owns the loop.

Lightning's and transformers'. Each module has the same two callbacks:

- ``AdviceCallback(advice)`` applies an advice at the start (``advice.apply``). The trained model is
  a tempered one: fold it (``tstar.fold``), or its checkpoint (``tstar fold``). With ``fold=True``
  the callback folds it at the end; checkpoints of the training then no longer load into it.
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
    """The part of a trainer's module that an advice is for: it holds and trains the output layer."""
    path, shape = advice.heads[0], (advice.case.num_classes, advice.case.num_features)
    parts: dict[int, nn.Module] = {}  # the outermost for each output layer
    for part in unwrap(model).modules():
        try:
            weight: Any = part.get_submodule(path).weight
        except AttributeError:
            continue
        if getattr(weight, "requires_grad", False) and tuple(weight.shape[:2]) == shape:
            parts.setdefault(id(weight), part)
    if len(parts) != 1:
        raise TstarError(
            "The trainer's module must hold one trainable model that the advice is for, got "
            f"{len(parts)} with an output layer {path!r} of {shape[0]} classes and {shape[1]} "
            "features. Freeze the others, or apply the advice yourself before the training: "
            "advice.apply(model, optimizer)."
        )
    return next(iter(parts.values()))
