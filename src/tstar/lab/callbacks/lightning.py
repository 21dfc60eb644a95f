"""An advice and a temperature schedule in a Lightning trainer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from tstar.errors import unknown
from tstar.imports import require
from tstar.lab.callbacks import part_for
from tstar.schedule import Schedule
from tstar.surgery import fold

if TYPE_CHECKING:
    from lightning.pytorch import Callback
else:
    Callback = require("lightning.pytorch", "all").Callback


class AdviceCallback(Callback):
    """Applies an advice to a module, or to the model in it, with one optimizer.

    Trainer(callbacks=[AdviceCallback(advice)])
    """

    def __init__(self, advice: Any, fold: bool = False) -> None:
        self.advice = replace(advice, live=False)  # the optimizer comes later
        self.fold = fold

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == "fit":  # before the optimizer is built, a checkpoint loaded, or DDP wraps it
            self.advice.apply(part_for(self.advice, pl_module))

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        (optimizer,) = trainer.optimizers
        schedulers = [config.scheduler for config in trainer.lr_scheduler_configs]
        self.advice.apply(part_for(self.advice, pl_module), optimizer, schedulers)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        if self.fold:
            fold(pl_module.eval(), inplace=True)


class TemperatureCallback(Callback):
    """Sets the tempered heads to the schedule's T before each epoch or step, and logs it.

    Trainer(callbacks=[TemperatureCallback(tstar.Schedule.warmup(T, steps=20))])
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
        pl_module.log("temperature", self.schedule.go_to(step).temperature)
