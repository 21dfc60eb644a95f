"""An advice and a temperature schedule in the transformers ``Trainer``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tstar.errors import require, unknown
from tstar.lab.callbacks import part_for
from tstar.output_layer import tempered_heads, unwrap
from tstar.schedule import Schedule
from tstar.surgery import fold

if TYPE_CHECKING:
    from transformers import TrainerCallback
else:
    TrainerCallback = require("transformers", "text").TrainerCallback


class AdviceCallback(TrainerCallback):
    """Applies an advice, and folds it away, so that ``save_pretrained`` writes the usual layers.

    Trainer(model, args, callbacks=[AdviceCallback(advice)])
    """

    def __init__(self, advice: Any, fold: bool = True) -> None:
        self.advice, self.fold = advice, fold

    def on_init_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # Before the optimizer is built, and before DDP wraps the model.
        self.advice.apply(part_for(self.advice, kwargs["model"]))

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        model = part_for(self.advice, kwargs["model"])
        self.advice.apply(model, kwargs["optimizer"], kwargs["lr_scheduler"])

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        model = unwrap(kwargs["model"])
        if self.fold and tempered_heads(model):
            fold(model.eval(), inplace=True)


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
        if logs is not None and self.schedule.drives:  # not a model that was left as it is
            logs["temperature"] = self.schedule.temperature
