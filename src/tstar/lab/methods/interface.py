"""What a method is: it turns a model and the facts of a training run into a recipe for training.

The training loop knows nothing else about methods. Most methods fill only ``model`` and ``loss``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor, nn

from tstar.lab import own


@dataclass(frozen=True)
class Facts:
    """What is known before training starts."""

    num_features: int  # M, the width of the output layer's input
    num_classes: int  # K
    csg: float | None = None  # the cumulative spectral gradient of the data set
    epochs: int = 1
    label_smoothing: float = 0.0  # ε of the smoothed targets; every method combines with it
    loss: str = "cross-entropy"  # or the reference of one of your own (tstar.lab.own)
    teacher: nn.Module | None = None  # a trained model with the same classes, for distillation
    validation: tuple[Tensor, Tensor] | None = None  # inputs, as the model sees them, and targets
    head: str | None = None  # the path of the output layer, if it is not found without help
    inputs: Tensor | None = None  # one batch of training inputs, as the model sees them
    training: Any = None  # the Config of the training, with its steps
    scenario: str = "scratch"  # or "finetune"
    samples: int | None = None  # how many are trained on


@dataclass
class Recipe:
    """What training needs from a method.

    The loss, ``loss(logits, targets, inputs)``, is the mean over the batch. ``on_epoch`` is called
    before each epoch with its number (from 1) and their total, and returns a factor on that epoch's
    learning rate; ``on_batch`` before each optimizer step with model, inputs, targets and rate;
    ``finish`` after training with model, inputs and targets of the validation part: it may change
    the model. What ``finish`` and ``report`` return is recorded.
    """

    model: nn.Module  # the changed copy; accuracy and validation loss are those of its output
    loss: Callable[[Tensor, Tensor, Tensor], Tensor]
    extra: nn.ModuleList = field(default_factory=nn.ModuleList)  # trained, outside the model
    on_epoch: Callable[[int, int], float] | None = None
    on_batch: Callable[[nn.Module, Tensor, Tensor, float], None] | None = None
    finish: Callable[[nn.Module, Tensor, Tensor], Mapping[str, Any]] | None = None
    report: Callable[[], Mapping[str, float]] | None = None
    config: Any = None  # the Config to train with, if the method changes rate or decay


@dataclass(frozen=True)
class Method:
    """A function ``f(model, facts, ...) -> Recipe`` by name; its options are its keywords.

    The function leaves the given model as it is: the recipe's model is a changed copy. ``needs``
    lists the facts that it cannot do without: ``"csg"``, ``"teacher"``, ``"validation"``.
    """

    name: str
    function: Callable[..., Recipe]
    needs: frozenset[str] = frozenset()
    options: Mapping[str, Any] = field(default_factory=dict)

    def prepare(self, model: nn.Module, facts: Facts) -> Recipe:
        """The recipe for this model; see :class:`Recipe`."""
        return self.function(model, facts, **self.options)


def own_method(reference: str, options: Mapping[str, Any]) -> Method:
    """A method of your own; if it needs facts, its function has an attribute ``needs``."""
    function = own.load(reference)

    def prepare(model: nn.Module, facts: Facts, **options: Any) -> Recipe:
        prepared = partial(function, model, facts, **options)  # one it does not take is an error
        recipe: Recipe = own.call(reference, prepared, returns=Recipe)
        recipe.loss = own.explained(reference)(recipe.loss)
        return recipe

    return Method(reference, prepare, frozenset(getattr(function, "needs", ())), options)
