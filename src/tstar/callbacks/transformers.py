"""A temperature schedule, and a monitor, in the transformers ``Trainer``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tstar.errors import require, unknown
from tstar.surgery.finding import tempered_heads, unwrap
from tstar.surgery.schedule import Schedule
from tstar.surgery.watching import Watch, watch

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

    def on_init_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        for head in tempered_heads(unwrap(kwargs["model"])).values():
            head.scheduled = True  # before a checkpoint is restored: its T is no surprise

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
        if logs is not None and self.schedule.drives:  # not a model that was left as it is
            logs["temperature"] = self.schedule.temperature


class WatchCallback(TrainerCallback):
    """Looks at the tempered heads after each epoch: :func:`tstar.watch`. Problems are warnings, numbers are logged.

    Trainer(model, callbacks=[WatchCallback()])
    """

    def __init__(self, schedule: Schedule | None = None) -> None:
        self.schedule = schedule
        self._look: Watch | None = None
        self._seen: dict[str, float] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._look = watch(unwrap(kwargs["model"]), schedule=self.schedule)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        assert self._look is not None
        for sight in self._look():
            self._seen |= {f"moved/{sight.head}": sight.moved}

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logs = kwargs.get("logs")
        if logs is not None:
            logs |= self._seen
