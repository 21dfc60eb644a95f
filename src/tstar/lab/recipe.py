"""What methods and the training loop agree on: a setting goes in, a recipe for training comes out.

Neither knows anything else of the other. Most methods fill only ``model`` and ``loss``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from tstar.errors import TstarError, share
from tstar.lab import own
from tstar.output_layer import Head
from tstar.training import Training

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Setting:
    """What is known before a training starts."""

    num_features: int  # M, the width of the output layer's input
    num_classes: int  # K
    training: Training = field(default_factory=Training)  # with its steps and samples
    csg: float | None = None  # the cumulative spectral gradient of the data set
    loss: str = "cross-entropy"  # or the reference of one of your own (tstar.lab.own)
    teacher: nn.Module | None = None  # a trained model with the same classes, for distillation
    validation: tuple[Tensor, Tensor] | None = None  # inputs, as the model sees them, and targets
    head: str | Head | None = None  # the output layer, or its path, if it is known
    inputs: Tensor | None = None  # one batch of training inputs, as the model sees them


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
    loss: Loss
    extra: nn.ModuleList = field(default_factory=nn.ModuleList)  # trained, outside the model
    on_epoch: Callable[[int, int], float] | None = None
    on_batch: Callable[[nn.Module, Tensor, Tensor, float], None] | None = None
    finish: Callable[[nn.Module, Tensor, Tensor], Mapping[str, Any]] | None = None
    report: Callable[[], Mapping[str, float]] | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the Config: rate and decay


@dataclass(frozen=True)
class Method:
    """A function ``f(model, setting, ...) -> Recipe`` by name; its options are its keywords.

    The function leaves the given model as it is: the recipe's model is a changed copy. ``needs``
    lists what it cannot do without: ``"csg"``, ``"teacher"``, ``"validation"``. One that searches
    has ``candidates`` in place of one training: each is trained, and the best one counts.
    """

    name: str
    function: Callable[..., Recipe]
    needs: frozenset[str] = frozenset()
    options: Mapping[str, Any] = field(default_factory=dict)
    candidates: tuple[Method, ...] = ()

    def prepare(self, model: nn.Module, setting: Setting) -> Recipe:
        """The recipe for this model; see :class:`Recipe`."""
        return self.function(model, setting, **self.options)


def own_method(reference: str, options: Mapping[str, Any]) -> Method:
    """A method of your own; if it needs something, its function has an attribute ``needs``."""
    function = own.load(reference)

    def prepare(model: nn.Module, setting: Setting, **options: Any) -> Recipe:
        prepared = partial(function, model, setting, **options)  # one it does not take is an error
        recipe: Recipe = own.call(reference, prepared, returns=Recipe)
        recipe.loss = own.explained(reference)(recipe.loss)
        return recipe

    return Method(reference, prepare, frozenset(getattr(function, "needs", ())), options)


def cross_entropy(setting: Setting) -> Loss:
    r"""−Σ_k y'_k·log softmax(z)_k, the mean over the batch, with y' = (1 − ε)·y + ε/K.

    Symbols: z the model's output (B, K), y one-hot targets, ε = ``setting.training.label_smoothing``. A loss
    of your own (``setting.loss``), ``f(logits, targets)``, takes its place.
    """
    epsilon = share("label_smoothing", setting.training.label_smoothing)
    if setting.loss == "cross-entropy":
        return lambda z, targets, inputs: F.cross_entropy(z, targets, label_smoothing=epsilon)
    if epsilon:
        raise TstarError(
            f"Label smoothing belongs to cross-entropy; leave it out for {setting.loss}."
        )
    reference, function = setting.loss, own.load(setting.loss)

    def loss(logits: Tensor, targets: Tensor, inputs: Tensor) -> Tensor:
        value = own.call(reference, function, logits, targets)
        if not isinstance(value, Tensor) or value.dim() or not value.requires_grad:
            raise TstarError(
                f"{reference} must return one number that depends on the logits, got {value!r}."
            )
        return value

    return loss
