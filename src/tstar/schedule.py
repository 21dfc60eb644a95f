"""Temperature over training time: a schedule that drives the tempered heads of a model.

The paper keeps T constant and closes with the wish for one that is lower early and rises. T is
written into the heads' buffer in place, so that ``torch.compile``, DDP and the state dict see an
ordinary buffer. Pure Python: it asks no more of a head than ``set_temperature``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tstar.errors import TstarError, guarded, positive, whole

if TYPE_CHECKING:
    from torch import nn


class Schedule:
    """T(step), with the model that it drives and the step that it is at.

    >>> schedule = Schedule.cosine(1.0, 12.0, steps=100)
    >>> schedule(0), round(schedule(50), 6), schedule(100), schedule(200)
    (1.0, 6.5, 12.0, 12.0)

    In training::

        schedule = tstar.Schedule.warmup(advice.temperature, steps=20).drive(model)
        for epoch in range(epochs):
            train_one_epoch()
            lr_scheduler.step()
            schedule.step()

    Args:
        function: the temperature at a step (from 0), a finite positive number. A ready-made
            schedule stays at its last temperature after its ``steps``.
    """

    def __init__(self, function: Callable[[int], float]) -> None:
        self._function = function
        self._step = 0
        self._heads: list[Any] | None = None  # of no model yet

    @classmethod
    def linear(cls, start: float, end: float, steps: int) -> Schedule:
        """T(t) = start + (end − start)·t/steps, then ``end``."""
        return cls._ramp(_linear, start, end, steps)

    @classmethod
    def cosine(cls, start: float, end: float, steps: int) -> Schedule:
        """T(t) = end + (start − end)·(1 + cos(π·t/steps))/2, then ``end``."""
        return cls._ramp(_cosine, start, end, steps)

    @classmethod
    def warmup(cls, temperature: float, steps: int, start: float = 1.0) -> Schedule:
        """Linearly from ``start`` (1) to T* in ``steps``, and T* from then on."""
        return cls._ramp(_linear, start, temperature, steps)

    @classmethod
    def _ramp(cls, shape: Any, start: float, end: float, steps: int) -> Schedule:
        ends = positive("start", start), positive("end", end)
        return cls(partial(shape, *ends, whole("steps", steps, least=1)))

    @guarded("The schedule's function failed")
    def __call__(self, step: int) -> float:
        """The temperature at a step, without touching any model."""
        return positive(f"The temperature at step {step}", self._function(step))

    def __repr__(self) -> str:
        return f"Schedule(step {self._step}, T = {self.temperature:g})"

    @property
    def temperature(self) -> float:
        """T at the present step."""
        return self(self._step)

    @guarded("drive() failed in your model")
    def drive(self, model: nn.Module) -> Schedule:
        """Take hold of every head of the model that has a temperature, and set it."""
        self._heads = [m for m in model.modules() if callable(getattr(m, "set_temperature", None))]
        if not self._heads:
            raise TstarError("The model has no tempered head; call tstar.temper first.")
        return self.go_to(self._step)

    def step(self) -> float:
        """Go one step further; returns the new temperature."""
        if self._heads is None:
            raise TstarError("A schedule must be given its model before it steps: drive(model).")
        return self.go_to(self._step + 1).temperature

    def go_to(self, step: int) -> Schedule:
        """Go to a step (from 0), and set the heads to its temperature."""
        step = whole("step", step, least=0)
        T = self(step)
        self._step = step
        for head in self._heads or ():
            head.set_temperature(T)
        return self

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint needs: the step."""
        return {"step": self._step}

    @guarded("The state must be what state_dict() gave")
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint. Call :meth:`drive` as well, before or after."""
        self.go_to(state["step"])


# At module level, not closures, so that a schedule can be pickled and copied with its model.
def _linear(start: float, end: float, steps: int, step: int) -> float:
    return end if step >= steps else start + (end - start) * step / steps


def _cosine(start: float, end: float, steps: int, step: int) -> float:
    turn = (1 + math.cos(math.pi * step / steps)) / 2
    return end if step >= steps else end + (start - end) * turn
