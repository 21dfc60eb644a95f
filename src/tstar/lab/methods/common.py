"""What several methods share, and the plainest of them: as it is, smoothed, as advised."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tstar.checks import share
from tstar.errors import TstarError
from tstar.head import Norm, replaced
from tstar.lab import own
from tstar.lab.methods.backbone import Backbone, matched_backbone, scale_backbone
from tstar.lab.methods.interface import Facts, Recipe
from tstar.lab.training.config import OPTIMIZERS, Config
from tstar.output_layer import in_mode, resolve_head, tempered_heads
from tstar.surgery import temper

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
# Numbers in a batch that is measured: 512 images of 32×32. Larger ones leave the caches.
_VALUES = 512 * 3 * 32 * 32


@torch.no_grad()
def predict(
    model: nn.Module,
    inputs: Any,
    *,
    prepare: Callable[[Tensor], Tensor] | None = None,
    amp: bool = False,
) -> Tensor:
    """The logits of a tensor (or ``Rows``) in eval mode, in float32 or better.

    Batches have 512 samples, or fewer if samples are large. Every module's own mode is restored.
    """
    size = min(512, max(16, _VALUES // max(1, int(inputs[:1].numel()))))
    slices = [slice(i, i + size) for i in range(0, len(inputs), size)]
    parts = []
    with in_mode(model):
        for batch in (inputs[s] for s in slices):
            ready = batch if prepare is None else prepare(batch)
            with torch.autocast(inputs.device.type, dtype=torch.bfloat16, enabled=amp):
                logits: Tensor = model(ready)
            parts.append(logits.to(torch.promote_types(logits.dtype, torch.float32)))
    return torch.cat(parts)


def cross_entropy(facts: Facts) -> Loss:
    r"""−Σ_k y'_k·log softmax(z)_k, the mean over the batch, with y' = (1 − ε)·y + ε/K.

    Symbols: z the model's output (B, K), y one-hot targets, ε = ``facts.label_smoothing``. A loss
    of your own (``facts.loss``), ``f(logits, targets)``, takes its place.
    """
    epsilon = share("label_smoothing", facts.label_smoothing)
    if facts.loss == "cross-entropy":
        return lambda z, targets, inputs: F.cross_entropy(z, targets, label_smoothing=epsilon)
    if epsilon:
        raise TstarError(
            f"Label smoothing belongs to cross-entropy; leave it out for {facts.loss}."
        )
    reference, function = facts.loss, own.load(facts.loss)

    def loss(logits: Tensor, targets: Tensor, inputs: Tensor) -> Tensor:
        value = own.call(reference, function, logits, targets)
        if not isinstance(value, Tensor) or value.dim() or not value.requires_grad:
            raise TstarError(
                f"{reference} must return one number that depends on the logits, got {value!r}."
            )
        return value

    return loss


def default(model: nn.Module, facts: Facts) -> Recipe:
    r"""L = CE(z, y): a copy of the model as it is, T = 1; the paper's baseline row "T = 1" (S)."""
    return Recipe(copy.deepcopy(model), cross_entropy(facts))


def at_temperature(
    model: nn.Module,
    temperature: float,
    facts: Facts,
    norm: Norm | None,
    backbone: Backbone = "as-is",
) -> Recipe:
    """Train a copy of the model with its logits divided by a fixed T, with or without the norm."""
    found = resolve_head(model, facts.head)
    tempered = temper(model, temperature, head=found, example_input=facts.inputs, norm=norm)
    if backbone != "as-is":
        c = matched_backbone(model, found, facts.inputs, norm) if backbone == "matched" else 1.0
        for head in tempered_heads(tempered).values():
            scale_backbone(head, c)
    return Recipe(model=tempered, loss=cross_entropy(facts))


def with_head(model: nn.Module, facts: Facts, change: Callable[[nn.Module], nn.Module]) -> Recipe:
    """Train a copy of the model whose output layer is ``change(layer)``, with cross-entropy."""
    changed = copy.deepcopy(model)
    layer = resolve_head(changed, facts.head).layer
    changed = replaced(changed, layer, change(layer).train(layer.training))
    return Recipe(changed, cross_entropy(facts))


def label_smoothing(model: nn.Module, facts: Facts, *, epsilon: float = 0.1) -> Recipe:
    r"""y' = (1 − ε)·y + ε/K, at T = 1.

    The optimal logit gap is T·ln(1 + K(1 − ε)/ε): a temperature only rescales it (D).

    Reference: Szegedy et al. 2016; the paper's equation of label smoothing, ε = 0.1 (S).
    """
    return default(model, replace(facts, label_smoothing=epsilon))


def advised(model: nn.Module, facts: Facts, *, advice: Any = None) -> Recipe:
    r"""L = CE(z/T, y) with the T, norm, rate and decay that :func:`tstar.recommend` advises.

    An optimizer of your own was not measured: with one the model is left as it is.

    Args:
        advice: what was recommended; asked for if it is not given.
    """
    from tstar.advice import recommend

    config: Config | None = facts.training
    if advice is None and config is not None and config.optimizer not in OPTIMIZERS:
        recipe = default(model, facts)
        recipe.report = lambda: {"lr_factor": 1.0, "left": True}
        return recipe
    advice = advice or recommend(model, **told(facts))
    advised = advice.apply(copy.deepcopy(model), example_input=facts.inputs)
    recipe = Recipe(advised, cross_entropy(facts))
    faster = 1.0
    if config is not None and not advice.leave:
        recipe.config = changed(config, advice)
        faster = round(recipe.config.lr / config.lr, 6)
    recipe.report = lambda: {"lr_factor": faster, "left": advice.leave}
    return recipe


def told(facts: Facts) -> dict[str, Any]:
    """The keywords of ``recommend`` that describe a case and its training."""
    names = ("csg", "num_classes", "head", "label_smoothing", "scenario", "samples")
    said = {name: getattr(facts, name) for name in names}
    config = facts.training
    if config is not None:
        names = ("optimizer", "lr", "momentum", "steps", "batch_size", "weight_decay")
        said |= {name: getattr(config, name) for name in names}
        said["schedule"] = config.schedule
    return said


def changed(config: Config, advice: Any) -> Config:
    """The protocol with the rate, the decay and the head's rate that an advice gives."""
    given = {"lr": advice.lr, "weight_decay": advice.weight_decay}
    if advice.head_lr is not None:
        given["head_lr"] = advice.head_lr / (advice.lr or config.lr)
    return replace(config, **{name: value for name, value in given.items() if value is not None})


def missing(method: str, fact: str, what_to_do: str = "") -> TstarError:
    """The error of a method that lacks a fact."""
    what_to_do = what_to_do or "hold out a part of the training set (val_fraction > 0)."
    return TstarError(f"Method {method!r} needs {fact}; {what_to_do}")
