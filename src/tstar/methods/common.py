"""What several methods share: the cross-entropy, the output layer's replacement, option checks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tstar import own
from tstar.errors import TstarError
from tstar.methods.interface import Facts, Recipe
from tstar.numbers import share
from tstar.surgery.finding import resolve_head
from tstar.surgery.head import Norm
from tstar.surgery.layers import replaced
from tstar.surgery.probing import in_mode
from tstar.surgery.tempering import temper

Backbone = Literal["as-is", "matched", "times-t"]
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
# Numbers in a batch that is measured: 512 images of 32×32. Larger ones leave the processor's caches.
_VALUES = 512 * 3 * 32 * 32


def measuring_batch(inputs: Any) -> int:
    """How many samples to measure at once: 512, fewer where samples are large."""
    return min(512, max(16, _VALUES // max(1, int(inputs[:1].numel()))))


@torch.no_grad()
def predict(
    model: nn.Module,
    inputs: Any,
    *,
    prepare: Callable[[Tensor], Tensor] | None = None,
    batch_size: int | None = None,
    amp: bool = False,
) -> Tensor:
    """The logits of a tensor (or ``Samples``) in eval mode, in float32 at least; every module's own mode is restored."""
    size = batch_size or measuring_batch(inputs)
    slices = [slice(i, i + size) for i in range(0, len(inputs), size)]
    tensor, parts = isinstance(inputs, Tensor), []
    with in_mode(model):
        for batch in (inputs[s] for s in slices) if tensor else inputs.batches(slices):
            ready = batch if prepare is None else prepare(batch)
            with torch.autocast(inputs.device.type, dtype=torch.bfloat16, enabled=amp):
                logits: Tensor = model(ready)
            parts.append(logits.to(torch.promote_types(logits.dtype, torch.float32)))
    return torch.cat(parts)


class Plain:
    """A method that needs no further fact; the others override."""

    needs: frozenset[str] = frozenset()


def cross_entropy(facts: Facts) -> Loss:
    r"""−Σ_k y'_k·log softmax(z)_k, the mean over the batch, with y' = (1 − ε)·y + ε/K.

    Symbols: z the model's output (B, K), y one-hot targets, ε = ``facts.label_smoothing``. A loss of your own
    (``facts.loss``) takes its place.
    """
    epsilon = share("label_smoothing", facts.label_smoothing)
    if facts.loss != "cross-entropy":
        if epsilon:
            raise TstarError(
                f"Label smoothing belongs to cross-entropy; leave it out for {facts.loss}."
            )
        return _own_loss(facts.loss)
    return lambda logits, targets, inputs: F.cross_entropy(logits, targets, label_smoothing=epsilon)


def _own_loss(reference: str) -> Loss:
    """A loss of your own, ``f(logits, targets)``."""
    function = own.load(reference)

    def loss(logits: Tensor, targets: Tensor, inputs: Tensor) -> Tensor:
        value = own.call(reference, function, logits, targets)
        if not isinstance(value, Tensor) or value.dim() or not value.requires_grad:
            raise TstarError(
                f"{reference} must return one number that depends on the logits, got {value!r}."
            )
        return value

    return loss


def at_temperature(
    model: nn.Module,
    temperature: float,
    facts: Facts,
    norm: Norm | None,
    backbone: Backbone = "as-is",
) -> Recipe:
    """Train a copy of the model with its logits divided by a fixed T, with or without the norm."""
    scales: dict[str, Any] = {"as-is": None, "matched": "matched", "times-t": 1.0}
    tempered = temper(
        model,
        temperature,
        head=resolve_head(model, facts.head),
        example_input=facts.inputs,
        norm=norm,
        backbone=scales[backbone],
    )
    return Recipe(model=tempered, loss=cross_entropy(facts))


def with_output_layer(
    model: nn.Module, facts: Facts, change: Callable[[nn.Module], nn.Module]
) -> nn.Module:
    """A copy of the model whose output layer is ``change(layer)``."""
    changed = copy.deepcopy(model)
    layer = resolve_head(changed, facts.head).layer
    return replaced(changed, layer, change(layer).train(layer.training))


def plain_copy(model: nn.Module, facts: Facts) -> Recipe:
    """The model as it is, with cross-entropy."""
    return Recipe(model=copy.deepcopy(model), loss=cross_entropy(facts))


def missing(method: str, fact: str, what_to_do: str) -> TstarError:
    return TstarError(f"Method {method!r} needs {fact}; {what_to_do}")
