"""What cannot be tempered as it stands, each refused with the sentence that says what to do instead."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from types import MethodType
from typing import Any

import torch
from torch import nn

from tstar.errors import TstarError, TstarWarning, shown, unknown
from tstar.surgery.finding import WRAPPERS, Head, refuse_lazy
from tstar.surgery.layers import is_output_layer, weight_of

# What a loss's name says, in any spelling. timm's BinaryCrossEntropy is one sigmoid per class, so that these come first.
_NOT_SOFTMAX = re.compile(
    r"""B(?i:CE)|M(?i:SE)|L1  # a capital within a name, as in SmoothL1Loss
    |(?<![a-z\d])(?i:bce|r?mse|mae|l1(?=[-_\ ]?loss|$))  # a word of its own, as in smooth_l1_loss
    |(?i:binary|sigmoid|multi[-_\ ]?label|huber|(?:gaussian|poisson)[-_\ ]?nll)
    # Margins between logits or embeddings; of some a softmax is taken, as in large-margin softmax.
    |(?i:hinge|triplet|cosine[-_\ ]?embedding|margin[-_\ ]?ranking|(?:multi|soft)[-_\ ]?margin(?![-_\ ]?softmax))""",
    re.VERBOSE,
)
_CROSS_ENTROPY = re.compile(r"(?i)cross[-_ ]?entropy|^ce(?:[-_ ]?loss)?$")  # takes a softmax itself
_NLL = re.compile(r"NLL|(?<![a-z])(?i:nll)")  # takes logarithms of probabilities
_TASKS = {
    "multi_label_classification": "a multi-label model (a sigmoid for each class)",
    "regression": "a regression model",
}


def refuse_wrapper(model: nn.Module) -> None:
    """Wrappers, compiled and sharded models: tempering comes before them."""
    if not isinstance(model, nn.Module):
        raise TstarError(f"The model must be a torch.nn.Module, got {type(model).__name__}.")
    refuse_lazy(model)
    kind = type(model).__name__
    why = ""
    if isinstance(model, torch.jit.ScriptModule):
        kind, why = "a scripted model", "its code is fixed"
    elif kind == "OptimizedModule":
        why = "the compiled graph is that of the untempered model"
    elif kind in WRAPPERS:
        why = "the wrapper has already registered the parameters that it synchronizes"
    elif is_sharded(model):
        kind, why = "a model after fully_shard", "the norm's parameters would not be reduced, so that the ranks drift apart"  # fmt: skip
    elif hasattr(model, "_original_forward") and hasattr(model.forward, "__wrapped__"):
        kind, why = "a model after accelerator.prepare", "its forward is bound to the untempered model"  # fmt: skip
    if why:
        raise TstarError(
            f"The model must be tempered before it is wrapped, got {kind}: {why}. Temper the plain model, then wrap "
            "it, and build the optimizer last."
        )


def is_sharded(model: nn.Module) -> bool:
    """Whether FSDP2 (``fully_shard``) or tensor parallelism has cut the parameters into pieces."""
    return any(hasattr(p, "device_mesh") and hasattr(p, "placements") for p in model.parameters())


def check_task(model: nn.Module, heads: Sequence[Head] = (), loss: Any = None) -> None:
    """Refuse what is not one softmax over the logits: by the loss, a configuration in the model, what it ends in."""
    name = _loss_name(loss)
    if _NOT_SOFTMAX.search(name):
        raise TstarError(
            f"A softmax over the classes must follow the logits, got the loss {name}, to which the softmax "
            "temperature does not apply."
        )
    if _NLL.search(name):
        return
    for head in heads:
        if "softmax" in head.passed:
            raise TstarError(
                f"The model must return logits, got a softmax after {head.path!r}: cross-entropy would take a softmax of it "
                "a second time. Remove it, train on the logits, and take the softmax where you need probabilities. If your "
                "loss is the NLL of their logarithm, say loss='nll_loss'."
            )
    if _CROSS_ENTROPY.search(name):
        return
    what = next((f"a sigmoid after {h.path!r}" for h in heads if "sigmoid" in h.passed), "")
    for module in model.modules():
        task = getattr(getattr(module, "config", None), "problem_type", None)
        what = _TASKS.get(task, what) if isinstance(task, str) else what
    if what:
        raise TstarError(
            f"A softmax over the classes must follow the logits, got {what}, to which the softmax temperature does not "
            "apply. If you train with cross-entropy on the logits, say loss='cross_entropy'."
        )


def _loss_name(loss: Any) -> str:
    """What a loss is called; a name that says nothing, or what is no loss at all, is an error."""
    if isinstance(loss, str):
        if not any(known.search(loss) for known in (_NOT_SOFTMAX, _NLL, _CROSS_ENTROPY)):
            raise unknown("loss", loss, ("cross_entropy", "nll_loss", "your own function or module itself"))  # fmt: skip
        return loss
    while isinstance(loss, partial):
        loss = loss.func
    if loss is not None and not callable(loss):
        raise TstarError(
            f"loss must be a function, a module or a name such as 'cross_entropy', got {shown(loss)}."
        )
    return str(getattr(loss, "__name__", type(loss).__name__))


def smoothing_of(loss: Any) -> float:
    """The label smoothing that a loss takes, as torch and timm name it; 0 where it says nothing of it."""
    told: Any = 0.0
    while isinstance(loss, partial):
        told = told or loss.keywords.get("label_smoothing", 0.0)
        loss = loss.func
    for name in ("label_smoothing", "smoothing"):
        told = told or getattr(loss, name, 0.0)
    return float(told) if isinstance(told, int | float) else 0.0


def refuse_second_holder(model: nn.Module, heads: Sequence[Head]) -> None:
    """A layer that a Python list or a bound method holds as well would be called past the norm and T."""
    for head in heads:
        for path, module in model.named_modules():
            for name, value in vars(module).items():
                if not name.startswith(("_modules", "_parameters", "_buffers")) and any(
                    held is head.layer for held in _held(value)
                ):
                    where = f"{path}.{name}".lstrip(".")
                    raise TstarError(
                        f"The output layer {head.path!r} is also held by {where!r}, outside of the model's modules, so "
                        "that the model would go past the norm and T. Use an nn.ModuleList, or look the layer "
                        "up when it is called."
                    )


def _held(value: Any) -> Iterator[Any]:
    """What a plain attribute holds: itself, the items of a container, the module of a bound method."""
    items: Any = (value,)
    if isinstance(value, dict):
        items = value.values()
    elif isinstance(value, list | tuple | set):
        items = value
    for item in items:
        inner = item.func if isinstance(item, partial) else item
        yield inner.__self__ if isinstance(inner, MethodType) else inner


def warn_of_adapter(model: nn.Module, heads: Sequence[Head]) -> None:
    """A head outside ``modules_to_save`` is not in a saved adapter: neither statistics nor T."""
    for head in heads:
        if hasattr(model, "peft_config") and "modules_to_save" not in head.path:
            warnings.warn(
                f"Saving the adapter will miss {head.path!r}: its weight, the norm's statistics and T. Name it in "
                "modules_to_save, or give the adapter's configuration a task type.",
                TstarWarning,
                stacklevel=3,
            )


def warn_of_others(model: nn.Module, heads: Sequence[Head]) -> None:
    """Heads of which one is chosen by name in each call: a run shows the default one alone."""
    paths = [head.path for head in heads]
    for head in heads:
        place = head.path.rpartition(".")[0]
        beside = model.get_submodule(place)
        if not isinstance(beside, nn.ModuleDict):
            continue
        every = [f"{place}.{name}".lstrip(".") for name, m in beside.items() if _alike(m, head)]
        if others := [path for path in every if path not in paths]:
            warnings.warn(
                f"Of the output layers in {place!r} only {head.path!r} is tempered, not {', '.join(map(repr, others))}; "
                f"pass head={sorted([*paths, *others])} for all of them, or head={head.path!r} if this is meant.",
                TstarWarning,
                stacklevel=3,
            )


def _alike(module: nn.Module, head: Head) -> bool:
    return is_output_layer(module) and weight_of(module).shape[1] == head.num_features
