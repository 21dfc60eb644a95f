"""Temperature over training time: a schedule that drives the tempered heads of a model.

The paper keeps T constant and closes with the wish for one that is lower early and rises. A
:class:`Schedule` gives a temperature for each step, counted from 0 (a step is whatever the caller
counts: epochs or batches), and writes it into the heads' buffer in place, so that ``torch.compile``,
DDP and the state dict see an ordinary buffer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tstar.errors import TstarError, shown
from tstar.numbers import positive, whole
from tstar.surgery.leaving import expect_left

if TYPE_CHECKING:
    from torch import nn


class Schedule:
    """T(step), with the model that it drives and the step that it is at.

    Steps like a learning-rate scheduler, and composes with any: the two touch different numbers.

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
        function: the temperature at a step (from 0), a finite positive number. Beyond a ready-made
            schedule's ``steps`` the temperature stays at its last value.
        description: what the schedule calls itself; a checkpoint of another one is refused.
    """

    def __init__(self, function: Callable[[int], float], description: str | None = None) -> None:
        if not callable(function):
            raise TstarError(
                f"A schedule's function must take a step and give a temperature, got {function!r}; for a "
                "fixed temperature use Schedule.constant."
            )
        self._function = function
        self.description = description or f"function {getattr(function, '__name__', 'of the user')}"
        self._step = 0
        self._heads: list[Any] | None = None  # of no model yet
        self._resumed = False

    @classmethod
    def constant(cls, temperature: float) -> Schedule:
        """T at every step."""
        T = positive("temperature", temperature)
        return cls(partial(_stepped, T, ()), f"constant {T:g}")

    @classmethod
    def linear(cls, start: float, end: float, steps: int) -> Schedule:
        """T(t) = start + (end − start)·t/steps, then ``end``."""
        return cls._ramp("linear", _linear, start, positive("end", end), steps)

    @classmethod
    def cosine(cls, start: float, end: float, steps: int) -> Schedule:
        """T(t) = end + (start − end)·(1 + cos(π·t/steps))/2, then ``end``."""
        return cls._ramp("cosine", _cosine, start, positive("end", end), steps)

    @classmethod
    def warmup(cls, temperature: float, steps: int, start: float = 1.0) -> Schedule:
        """Linearly from ``start`` (1) to T* in ``steps``, and T* from then on."""
        return cls._ramp("warmup", _linear, start, positive("temperature", temperature), steps)

    @classmethod
    def _ramp(
        cls, name: str, shape: Callable[..., float], start: float, end: float, steps: int
    ) -> Schedule:
        a, n = positive("start", start), whole("steps", steps, least=1)
        return cls(partial(shape, a, end, n), f"{name} {a:g} → {end:g} in {n}")

    @classmethod
    def stepped(cls, temperature: float, factors: Mapping[int, float]) -> Schedule:
        """T·Π of the factors whose step has come; heated-up softmax is ``stepped(T, {3·n//4: 4.0})``."""
        T = positive("temperature", temperature)
        checked = {whole("step", at, least=0): positive("factor", by) for at, by in factors.items()}
        ordered = tuple(sorted(checked.items()))
        text = ", ".join(f"×{by:g} at {at}" for at, by in ordered)
        return cls(partial(_stepped, T, ordered), f"stepped {T:g}, {text}")

    def __call__(self, step: int) -> float:
        """The temperature at a step, without touching any model."""
        given = self._function(step)
        try:
            return positive("temperature", given)
        except TstarError:
            raise TstarError(
                f"A schedule must give finite positive temperatures, got {shown(given)} at step {step} "
                f"({self.description})."
            ) from None

    def __repr__(self) -> str:
        idle = "" if self.drives else ", no model driven"
        return f"Schedule({self.description}; step {self._step}, T = {self.temperature:g}{idle})"

    @property
    def temperature(self) -> float:
        """T at the present step."""
        return self(self._step)

    @property
    def drives(self) -> bool:
        """Whether there is a head whose T it sets."""
        return bool(self._heads)

    def drive(self, model: nn.Module) -> Schedule:
        """Take hold of every head of the model that has a temperature, and set it for the present step.

        A model that was left as it is, on advice, has none: the schedule then goes on for itself.
        """
        heads: list[Any] = [
            m for m in model.modules() if callable(getattr(m, "set_temperature", None))
        ]
        if not heads:
            expect_left(model)
        self._heads = heads
        for head in heads:
            head.scheduled = True  # so that a checkpoint's T is no surprise
        return self.go_to(self._step)

    def step(self) -> float:
        """Go one step further; returns the new temperature."""
        if self._resumed and self._heads is None:
            raise TstarError(
                "A schedule that was loaded from a checkpoint must be given its model again: call drive(model)."
            )
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
        """What a checkpoint needs: the step, and which schedule it belongs to. Plain types only."""
        return {"step": self._step, "description": self.description}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint: the step is restored and the heads are set to its temperature.

        Which model it drives is not in the checkpoint: call :meth:`drive`, before or after.
        """
        if "step" not in state:
            raise TstarError(f"A schedule's state must have a 'step', got {sorted(state)}.")
        before = state.get("description", self.description)
        if before != self.description:
            raise TstarError(
                f"The checkpoint must come from the same schedule ({self.description}), got one of "
                f"{before!r}; build that one, or go on with go_to(step)."
            )
        self._resumed = True
        self.go_to(state["step"])


# At module level, not closures, so that a schedule can be pickled and copied with its model.
def _linear(start: float, end: float, steps: int, step: int) -> float:
    return end if step >= steps else start + (end - start) * step / steps


def _cosine(start: float, end: float, steps: int, step: int) -> float:
    return (
        end if step >= steps else end + (start - end) * (1 + math.cos(math.pi * step / steps)) / 2
    )


def _stepped(temperature: float, factors: tuple[tuple[int, float], ...], step: int) -> float:
    return temperature * math.prod(by for at, by in factors if step >= at)
