"""A temperature schedule in the transformers ``Trainer``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tstar.errors import require, unknown
from tstar.surgery.finding import unwrap
from tstar.surgery.schedule import Schedule

if TYPE_CHECKING:
    from transformers import TrainerCallback
else:
    TrainerCallback = require("transformers", "transformers").TrainerCallback


class TemperatureCallback(TrainerCallback):
    """Sets the tempered heads of the model to the schedule's T before each epoch or step, and logs it.

    The step is the trainer's own count (optimizer steps, so that accumulated gradients count once), so a run
    that is resumed from a checkpoint goes on at the right temperature.

        Trainer(model, callbacks=[TemperatureCallback(tstar.Schedule.warmup(advice.temperature, steps=500))])

    Args:
        schedule: the temperature over time.
        every: what the schedule counts, ``"step"`` or ``"epoch"``.
    """

    def __init__(self, schedule: Schedule, every: Literal["epoch", "step"] = "step") -> None:
        if every not in ("epoch", "step"):
            raise unknown("interval", every, ("epoch", "step"))
        self.schedule, self.every = schedule, every

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.schedule.drive(unwrap(kwargs["model"]))

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.every == "epoch":
            self.schedule.go_to(int(state.epoch or 0))

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.every == "step":
            self.schedule.go_to(state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logs = kwargs.get("logs")
        if logs is not None:
            logs["temperature"] = self.schedule.temperature
