"""What several methods share, and the plainest of them: as it is, smoothed, as advised."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import nn

from tstar.errors import TstarError
from tstar.head import Norm, replaced
from tstar.lab.recipe import Method as Method
from tstar.lab.recipe import Recipe, Setting, cross_entropy
from tstar.output_layer import resolve_head
from tstar.surgery import temper


def default(model: nn.Module, setting: Setting) -> Recipe:
    r"""L = CE(z, y): a copy of the model as it is, T = 1; the paper's baseline row "T = 1" (S)."""
    return Recipe(copy.deepcopy(model), cross_entropy(setting))


def at_temperature(
    model: nn.Module, temperature: float, setting: Setting, norm: Norm | None
) -> Recipe:
    """Train a copy of the model with its logits divided by a fixed T, with or without the norm."""
    how: dict[str, Any] = {"head": setting.head, "example_input": setting.inputs}
    return Recipe(temper(model, temperature, norm=norm, **how), cross_entropy(setting))


def with_head(
    model: nn.Module, setting: Setting, change: Callable[[nn.Module], nn.Module]
) -> Recipe:
    """Train a copy of the model whose output layer is ``change(layer)``, with cross-entropy."""
    changed = copy.deepcopy(model)
    layer = changed.get_submodule(resolve_head(model, setting.head).path)
    changed = replaced(changed, layer, change(layer).train(layer.training))
    return Recipe(changed, cross_entropy(setting))


def label_smoothing(model: nn.Module, setting: Setting, *, epsilon: float = 0.1) -> Recipe:
    r"""y' = (1 − ε)·y + ε/K, at T = 1.

    The optimal logit gap is T·ln(1 + K(1 − ε)/ε): a temperature only rescales it (D).

    Reference: Szegedy et al. 2016; the paper's equation of label smoothing, ε = 0.1 (S).
    """
    smoothed = replace(setting.training, label_smoothing=epsilon)
    return default(model, replace(setting, training=smoothed))


def advised(model: nn.Module, setting: Setting) -> Recipe:
    r"""L = CE(z/T, y) with the T, norm and rate that :func:`tstar.recommend` advises."""
    from tstar.advice import recommend

    how = setting.training
    K, head = setting.num_classes, setting.head
    advice = recommend(model, num_classes=K, head=head, optimizer=how, scenario=how.scenario)
    advised = advice.apply(copy.deepcopy(model), example_input=setting.inputs)
    recipe = Recipe(advised, cross_entropy(setting), changes=changes(advice))
    faster = round(recipe.changes.get("lr", how.lr or 1) / (how.lr or 1), 6)
    recipe.report = lambda: {"lr_factor": faster, "left": advice.leave}
    return recipe


def changes(advice: Any) -> dict[str, Any]:
    """What an advice changes in the protocol: the rate."""
    return {} if advice.leave or advice.lr is None else {"lr": advice.lr}


def missing(method: str, fact: str, what_to_do: str = "") -> TstarError:
    """The error of a method that lacks a fact."""
    what_to_do = what_to_do or "hold out a part of the training set (val_fraction > 0)."
    return TstarError(f"Method {method!r} needs {fact}; {what_to_do}")
