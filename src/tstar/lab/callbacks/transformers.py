"""An advice and a temperature schedule in the transformers ``Trainer``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from tstar.errors import unknown
from tstar.imports import require
from tstar.lab.callbacks import part_for
from tstar.output_layer import unwrap
from tstar.schedule import Schedule
from tstar.surgery import fold

if TYPE_CHECKING:
    from transformers import TrainerCallback
else:
    TrainerCallback = require("transformers", "text").TrainerCallback


class AdviceCallback(TrainerCallback):
    """Applies an advice to the model and to the optimizer.

    Trainer(model, args, callbacks=[AdviceCallback(advice)])
    """

    def __init__(self, advice: Any, fold: bool = False) -> None:
        self.advice = replace(advice, live=False)  # the optimizer comes later
        self.fold = fold

    def on_init_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # Before the optimizer is built, and before DDP wraps the model.
        self.advice.apply(part_for(self.advice, kwargs["model"]))

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        model = part_for(self.advice, kwargs["model"])
        self.advice.apply(model, kwargs["optimizer"], kwargs["lr_scheduler"])

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.fold:
            fold(unwrap(kwargs["model"]).eval(), inplace=True)


class TemperatureCallback(TrainerCallback):
    """Sets the tempered heads to the schedule's T before each step or epoch, and logs it.

    Trainer(model, args, callbacks=[TemperatureCallback(tstar.Schedule.warmup(T, steps=500))])
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

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if logs is not None:
            logs["temperature"] = self.schedule.temperature
