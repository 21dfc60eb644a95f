"""What a method is: it turns a model and the facts of a training run into a recipe for training.

The training loop knows nothing else about methods. Everything beyond ``model`` and ``loss`` is
optional; most methods need only those two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor, nn


@dataclass(frozen=True)
class Facts:
    """What is known before training starts."""

    num_features: int
    num_classes: int
    csg: float | None = None
    epochs: int = 1
    label_smoothing: float = 0.0
    teacher: nn.Module | None = None


@dataclass
class Recipe:
    """What training needs of a method.

    Attributes:
        model: the (changed) model; its output is what accuracy and validation loss are computed on.
        loss: ``loss(logits, targets, inputs) -> scalar``, the mean over the batch.
        extra: modules outside the model whose parameters the optimiser trains as well.
        on_epoch: called before each epoch with its number (from 1) and their total; returns the
            factor on the scheduled learning rate of that epoch.
        on_batch: called before each optimiser step as ``on_batch(model, inputs, targets, lr)``.
        finish: called once after training as ``finish(model, inputs, targets)`` with the validation
            part; returns numbers to record, and may change the model (temperature scaling).
    """

    model: nn.Module
    loss: Callable[[Tensor, Tensor, Tensor], Tensor]
    extra: nn.ModuleList = field(default_factory=nn.ModuleList)
    on_epoch: Callable[[int, int], float] | None = None
    on_batch: Callable[[nn.Module, Tensor, Tensor, float], None] | None = None
    finish: Callable[[nn.Module, Tensor, Tensor], Mapping[str, Any]] | None = None


class Method(Protocol):
    """A method of the paper's Table 1, or one named around it.

    ``needs`` lists which facts it cannot do without: ``"csg"``, ``"teacher"``, ``"validation"``.
    ``candidates`` is empty, or the temperatures of a method that searches: each is a training run,
    and the best on validation data is kept.
    """

    name: str
    needs: frozenset[str]

    @property
    def candidates(self) -> tuple[float, ...]: ...

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe: ...
