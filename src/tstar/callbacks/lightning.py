"""A temperature schedule in a Lightning trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tstar.errors import require, unknown
from tstar.surgery.schedule import Schedule

if TYPE_CHECKING:
    from lightning.pytorch import Callback
else:
    Callback = require("lightning.pytorch", "lightning").Callback


class TemperatureCallback(Callback):
    """Sets the tempered heads of the module to the schedule's T before each epoch or step, and logs it.

    The step is the trainer's own count (optimizer steps, so that accumulated gradients count once), so a run
    that is resumed from a checkpoint goes on at the right temperature.

        Trainer(callbacks=[TemperatureCallback(tstar.Schedule.warmup(advice.temperature, steps=20))])

    Args:
        schedule: the temperature over time.
        every: what the schedule counts, ``"epoch"`` or ``"step"``.
    """

    def __init__(self, schedule: Schedule, every: Literal["epoch", "step"] = "epoch") -> None:
        if every not in ("epoch", "step"):
            raise unknown("interval", every, ("epoch", "step"))
        self.schedule, self.every = schedule, every

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self.schedule.drive(pl_module)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if self.every == "epoch":
            self._set(trainer.current_epoch, pl_module)

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.every == "step":
            self._set(trainer.global_step, pl_module)

    def _set(self, step: int, pl_module: Any) -> None:
        self.schedule.go_to(step)
        pl_module.log("temperature", self.schedule.temperature)
