"""A monitor of a tempered training: is the norm learning, is the head, is T what it should be, how fast is the rest?"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor, nn

from tstar.errors import TstarWarning
from tstar.surgery.finding import unwrap, working_heads
from tstar.surgery.head import TemperedHead
from tstar.surgery.leaving import expect_left
from tstar.surgery.schedule import Schedule
from tstar.surgery.speed import Speeds, speeds


@dataclass(frozen=True)
class Sight:
    """What a look at one tempered head showed, since the look before.

    Attributes:
        head: its path in the model.
        batches: training batches that the norm has seen; ``None`` without a batch norm.
        moved: how far the layer's weight has moved, relative to its size.
        temperature: T now.
        speeds: next to the plain model's, where the monitor was given a batch and the optimizer.
        problems: a sentence for each thing that is wrong.
    """

    head: str
    batches: int | None
    moved: float
    temperature: float
    speeds: Speeds | None
    problems: tuple[str, ...]

    def __str__(self) -> str:
        norm = "" if self.batches is None else f", norm saw {self.batches} batches"
        lines = [
            f"{self.head or 'head'}: T = {self.temperature:.4g}, weight moved by {self.moved:.2%}{norm}"
        ]
        lines += [f"  problem: {problem}" for problem in self.problems]
        if self.speeds is not None:
            lines += [f"  {sentence}" for sentence in self.speeds.cautions]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON types."""
        known = None if self.speeds is None else self.speeds.to_dict()
        return {**asdict(self), "problems": list(self.problems), "speeds": known}


class Watch:
    """What :func:`watch` returns; call it at the end of each epoch."""

    def __init__(
        self, model: nn.Module, schedule: Schedule | None, batch: Any, optimizer: Any
    ) -> None:
        self._model, self._schedule = unwrap(model), schedule
        self._batch, self._optimizer = batch, optimizer
        self._before = {path: _state(head) for path, head in self._heads().items()}
        self._told: set[str] = set()

    def _heads(self) -> dict[str, TemperedHead]:
        heads = working_heads(self._model)
        if not heads:
            expect_left(self._model)
        return heads

    def __call__(self) -> tuple[Sight, ...]:
        """Look at every tempered head. A problem is also a warning, the first time that it is seen."""
        sights = tuple(self._look(path, head) for path, head in self._heads().items())
        for sight in sights:
            for problem in sight.problems:
                if problem not in self._told:
                    self._told.add(problem)
                    warnings.warn(problem, TstarWarning, stacklevel=2)
        return sights

    def _look(self, path: str, head: TemperedHead) -> Sight:
        weight, seen = _state(head)
        old, seen_before = self._before.get(path, (weight, seen))
        self._before[path] = weight, seen
        size = float(old.double().norm())
        moved = float((weight - old).double().norm()) / size if size else float(weight.any())
        batches = None if seen is None or seen_before is None else seen - seen_before
        T = float(head.temperature)
        problems = []
        if moved == 0:
            problems.append(
                f"The output layer {path!r} has not moved: no optimizer trains it, or no gradient reaches it."
            )
        if batches == 0 and moved > 0:
            problems.append(
                f"The norm before {path!r} has seen no batch: batches of one sample, or a helper that freezes BatchNorm."
            )
        if self._schedule is not None and abs(T / self._schedule.temperature - 1) > 1e-5:
            problems.append(
                f"T = {T:.4g} at {path!r}, but the schedule says {self._schedule.temperature:.4g}: call its drive(model)."
            )
        known = self._batch is not None and self._optimizer is not None
        own = speeds(self._model, self._batch, self._optimizer, head=path) if known else None
        return Sight(path, batches, moved, T, own, tuple(problems))


def watch(
    model: nn.Module,
    *,
    schedule: Schedule | None = None,
    batch: Any = None,
    optimizer: Any = None,
) -> Watch:
    """A monitor of a tempered model: call what it returns at the end of each epoch.

    It tells whether the norm before the head sees batches, whether the head learns, whether T is what the schedule
    says, and, given a batch and the optimizer, how fast head and backbone learn next to the plain model. In a trainer
    that owns the loop: ``WatchCallback`` of :mod:`tstar.callbacks.lightning` and :mod:`tstar.callbacks.transformers`. In
    a model that was left as it is, on advice, it sees nothing.

    >>> import torch, tstar
    >>> model = tstar.temper(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), 2.0)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> look = tstar.watch(model)
    >>> for _ in range(2):
    ...     loss = nn.functional.cross_entropy(model(torch.randn(16, 4)), torch.arange(16) % 3)
    ...     loss.backward()
    ...     optimizer.step()
    >>> (sight,) = look()
    >>> sight.batches, sight.problems
    (2, ())
    """
    return Watch(model, schedule, batch, optimizer)


def _state(head: TemperedHead) -> tuple[Tensor, int | None]:
    seen = getattr(head.norm, "num_batches_tracked", None)
    return head.weight.detach().clone(), int(seen) if isinstance(seen, Tensor) else None
