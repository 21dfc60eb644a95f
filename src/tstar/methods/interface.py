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
    """What is known before training starts.

    Attributes:
        num_features: M, the width of the output layer's input.
        num_classes: K.
        csg: the cumulative spectral gradient of the data set.
        epochs: how long training will take.
        label_smoothing: ε of the smoothed targets; every method combines with it.
        loss: ``"cross-entropy"``, or the reference of one of your own (:mod:`tstar.own`).
        teacher: a trained model with the same classes, for distillation.
        validation: (inputs, targets) of the validation part, as the model sees them, for methods
            that look at it while they train (meta-kd).
        head: the output layer's path, where it cannot be found without help.
        inputs: one batch of training inputs, as the model sees them, for methods that measure the model.
        training: the ``Config`` of the training, with its steps. scenario: ``"scratch"`` or ``"finetune"``.
        samples: how many are trained on.
    """

    num_features: int
    num_classes: int
    csg: float | None = None
    epochs: int = 1
    label_smoothing: float = 0.0
    loss: str = "cross-entropy"
    teacher: nn.Module | None = None
    validation: tuple[Tensor, Tensor] | None = None
    head: str | None = None
    inputs: Tensor | None = None
    training: Any = None
    scenario: str = "scratch"
    samples: int | None = None


@dataclass
class Recipe:
    """What training needs of a method.

    Attributes:
        model: the (changed) model; its output is what accuracy and validation loss are computed on.
        loss: ``loss(logits, targets, inputs) -> scalar``, the mean over the batch.
        extra: modules outside the model whose parameters the optimizer trains as well.
        on_epoch: called before each epoch with its number (from 1) and their total; returns the
            factor on the scheduled learning rate of that epoch.
        on_batch: called before each optimizer step as ``on_batch(model, inputs, targets, lr)``.
        finish: called once after training as ``finish(model, inputs, targets)`` with the validation
            part; returns numbers to record, and may change the model (temperature scaling).
        report: called after training; returns what the method learned (a temperature, say). Unlike
            ``finish`` it needs no validation part.
    """

    model: nn.Module
    loss: Callable[[Tensor, Tensor, Tensor], Tensor]
    extra: nn.ModuleList = field(default_factory=nn.ModuleList)
    on_epoch: Callable[[int, int], float] | None = None
    on_batch: Callable[[nn.Module, Tensor, Tensor, float], None] | None = None
    finish: Callable[[nn.Module, Tensor, Tensor], Mapping[str, Any]] | None = None
    report: Callable[[], Mapping[str, float]] | None = None


class Method(Protocol):
    """A method of the paper's Table 1, or one named around it.

    ``needs`` lists which facts it cannot do without: ``"csg"``, ``"teacher"``, ``"validation"``.
    ``prepare`` leaves the given model as it is: the recipe's model is a changed copy.
    """

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> frozenset[str]: ...

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe: ...
