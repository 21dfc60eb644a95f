"""A temperature schedule, and a monitor, in a Lightning trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tstar.errors import require, unknown
from tstar.surgery.finding import tempered_heads
from tstar.surgery.schedule import Schedule
from tstar.surgery.watching import Watch, watch

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

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        for head in tempered_heads(pl_module).values():
            head.scheduled = True  # before a checkpoint is restored: its T is no surprise

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
        if self.schedule.drives:  # not a model that was left as it is
            pl_module.log("temperature", self.schedule.temperature)


class WatchCallback(Callback):
    """Looks at the tempered heads after each epoch: :func:`tstar.watch`. Problems are warnings, numbers are logged.

    Trainer(callbacks=[WatchCallback()])
    """

    def __init__(self, schedule: Schedule | None = None) -> None:
        self.schedule = schedule
        self._look: Watch | None = None

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        self._look = watch(pl_module, schedule=self.schedule)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        assert self._look is not None
        for sight in self._look():
            pl_module.log(f"moved/{sight.head}", sight.moved)
            pl_module.log(f"temperature/{sight.head}", sight.temperature)
