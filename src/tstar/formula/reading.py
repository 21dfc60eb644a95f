"""What the optimizers and schedulers of torch, timm, transformers, accelerate and Fabric say about a training.

They are read by what they offer; nothing of theirs is imported, and nothing of theirs changes: a scheduler is copied
onto an optimizer without parameters and run there without training.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tstar.errors import TstarError
from tstar.numbers import number

# Where SAM, Lookahead, Fabric and accelerate keep the optimizer that they wrap.
_INSIDE = ("base_optimizer", "_base_optimizer", "_optimizer", "optimizer")
_BY_STEP = ("LambdaLR", "OneCycleLR", "CyclicLR")  # made to be stepped after every batch
# They forget a rate that is set after they are built.
FROM_INITIAL = ("LambdaLR", "CosineAnnealingWarmRestarts")
_LENGTHS = ("T_max", "total_steps", "total_iters", "step_size", "T_0")
_LONGEST = 100_000  # steps of a schedule that are done one by one, in a second or so
_DEAD, _EARLY, _FALLEN = 0.01, 0.1, 0.75  # see _by_epoch_after_all
_MOST = 2_000  # evaluations of a schedule that is a function of the step alone


def optimizer_facts(optimizer: Any, layer: Any, known: Callable[[str], bool]) -> dict[str, Any]:
    """Name, highest rate so far, momentum and weight decay of the group that trains ``layer``."""
    optimizer = unwrapped(optimizer)
    group = optimizer.param_groups[_group(optimizer, layer)]
    # A cycle of momentum starts at its highest; what the user gave is the optimizer's default.
    cycled = "max_momentum" in group
    momentum = optimizer.defaults.get("momentum") if cycled else group.get("momentum")
    return {
        "optimizer": optimizer_name(optimizer, known),
        "lr": highest_rate(group),
        "momentum": momentum,
        "weight_decay": group.get("weight_decay"),
    }


def optimizer_name(optimizer: Any, known: Callable[[str], bool]) -> str:
    """What an optimizer is called, in lower case: by the first of its classes that is known, else by its own."""
    names = [kind.__name__.lower() for kind in type(unwrapped(optimizer)).__mro__]
    return next(filter(known, names), names[0])


def unwrapped(optimizer: Any) -> Any:
    """The optimizer inside SAM, Lookahead, accelerate's and Fabric's wrappers."""
    for _ in range(4):
        held = (getattr(optimizer, name, None) for name in _INSIDE)
        inner = next((one for one in held if getattr(one, "param_groups", None)), None)
        if inner is None or inner is optimizer:
            break
        optimizer = inner
    return optimizer


def highest_rate(group: Any) -> float:
    """The rate that a schedule falls from: a warm-up may have lowered it, a cycle will raise it."""
    rates = (group.get("max_lr"), group.get("initial_lr"), group.get("lr"))
    return max(number("The learning rate", rate) for rate in rates if rate is not None)


def _group(optimizer: Any, layer: Any) -> int:
    """Which group trains the output layer; where none does, the one with the highest rate."""
    groups = optimizer.param_groups
    mine = {id(p) for p in layer.parameters()} if layer is not None else set()
    own = [i for i, group in enumerate(groups) if any(id(p) in mine for p in group["params"])]
    return max(own or range(len(groups)), key=lambda i: highest_rate(groups[i]))


def schedule_facts(
    scheduler: Any, optimizer: Any, steps: int | None, epochs: float | None, layer: Any
) -> dict[str, Any]:
    """The schedule's name, its highest rate, and the mean rate over the highest; the last two if it could be run."""
    inner = getattr(scheduler, "scheduler", scheduler)  # accelerate's wrapper
    own = getattr(inner, "optimizer", None)
    if own is None or not hasattr(inner, "step"):
        raise TstarError(
            "scheduler must be a learning-rate scheduler, or 'cosine', 'linear' or 'constant'; got "
            f"{type(scheduler).__name__}."
        )
    name = type(inner).__name__
    if "Plateau" in name:  # what it will do depends on the training
        return {"schedule": "constant", "rate_factor": 1.0}
    index = _group(unwrapped(own), layer)
    try:
        rates = [*_rates(inner, own, index, steps, epochs)]
        if name == "LambdaLR" and epochs is not None:
            by_epoch = [*_run(inner, own, index, epochs)]
            rates = by_epoch if _by_epoch_after_all(rates, by_epoch) else rates
    except TstarError:
        raise
    except Exception:  # a scheduler of someone else's that cannot be copied or run alone
        rates = []
    if not rates or max(rates) <= 0 or min(rates) < 0:  # below zero it is past its end
        return {"schedule": name}
    highest, mean = max(rates), math.fsum(rates) / len(rates)
    constant = min(rates) == highest
    return {
        "schedule": "constant" if constant else name,
        "lr": highest,
        "rate_factor": 1.0 if constant else mean / highest,
    }


class _Rates:
    """An optimizer without parameters: all that a scheduler reads and writes."""

    def __init__(self, optimizer: Any) -> None:
        self.param_groups = [
            {**{k: copy.deepcopy(v) for k, v in group.items() if k != "params"}, "params": []}
            for group in optimizer.param_groups
        ]
        self.defaults = dict(optimizer.defaults)
        self.state: dict[Any, Any] = {}
        self._opt_called = True  # torch warns of a scheduler that steps before its optimizer

    def step(self) -> None: ...

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]


def _rates(
    scheduler: Any, optimizer: Any, index: int, steps: int | None, epochs: float | None
) -> Iterator[float]:
    """The learning rate over the run, from a copy of the scheduler; nothing where its clock is not known."""
    timm = hasattr(scheduler, "step_update")
    by_epoch = timm or _by_epoch(scheduler, steps, epochs)
    ticks = epochs if by_epoch else steps
    if by_epoch is not None and ticks is not None:
        yield from _run(scheduler, optimizer, index, ticks, steps if timm else None)


def _run(
    scheduler: Any, optimizer: Any, index: int, ticks: float, steps: int | None = None
) -> Iterator[float]:
    """The rate at each of so many ticks; one of timm's has the number of steps beside that of the epochs."""
    free = _Rates(optimizer)
    memo: dict[int, Any] = {id(optimizer): free, id(unwrapped(optimizer)): free}
    clock = copy.deepcopy(scheduler, memo)
    group = free.param_groups[index]
    total = max(1, round(float(ticks)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if hasattr(clock, "step_update"):
            for epoch in range(total) if total <= _LONGEST else ():
                clock.step(epoch)
                for part in range(8):
                    clock.step_update(round((epoch + part / 8) * (steps or 0) / total))
                    yield float(group["lr"])
            return
        # These two compute the rate from the step alone, so that steps can be left out.
        stride = max(1, total // _MOST) if type(clock).__name__ in _BY_STEP[:2] else 1
        if stride == 1 and total > _LONGEST:
            yield from _closed_form(clock, index, total)
            return
        for tick in range(0, total, stride):
            if tick:
                if stride > 1:
                    clock.last_epoch = tick - 1
                clock.step()
            yield float(group["lr"])


def _closed_form(clock: Any, index: int, total: int) -> Iterator[float]:
    """A schedule of torch that tells its rate at any step; nothing where it does not."""
    rates = getattr(clock, "_get_closed_form_lr", None)
    if rates is None:
        return
    for tick in range(0, total, total // _MOST):
        clock.last_epoch = tick
        yield float(rates()[index])


def _by_epoch_after_all(by_step: Sequence[float], by_epoch: Sequence[float]) -> bool:
    """Whether a function of the tick means epochs, as in torch's own example, ``lambda epoch: 0.95 ** epoch``.

    Nothing says so but its values: by step it would be dead, for good, before a tenth of the run; by epoch it falls in
    time. A schedule of too few steps, such as those of accumulated gradients, hardly falls in as many epochs.
    """
    if not by_step or not by_epoch or max(by_step) <= 0:
        return False
    alive = [tick for tick, rate in enumerate(by_step) if rate >= _DEAD * max(by_step)]
    falls = 0 <= by_epoch[-1] < _FALLEN * max(by_epoch)
    return falls and alive[-1] < _EARLY * len(by_step)


def _by_epoch(scheduler: Any, steps: int | None, epochs: float | None) -> bool | None:
    """Whether it is stepped after each epoch; ``None`` where that cannot be told."""
    inside = [scheduler, *getattr(scheduler, "_schedulers", ())]
    if any(type(one).__name__ in _BY_STEP for one in inside):
        return False
    lengths = [getattr(one, name, None) for one in inside for name in _LENGTHS]
    lengths += [max(one.milestones, default=0) for one in inside if hasattr(one, "milestones")]
    longest = max((int(length) for length in lengths if length), default=0)
    if epochs is not None:
        return longest <= epochs
    if steps is not None and longest >= steps / 4:
        return False
    return None
