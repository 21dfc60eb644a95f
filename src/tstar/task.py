"""Is the model's task one softmax over the classes? If not, the temperature does not apply."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import nn
from torch.nn import functional
from torch.nn.modules import loss as torch_losses

from tstar.errors import TstarError, shown, unknown
from tstar.output_layer import Head

_TASKS = {
    "multi_label_classification": "a multi-label model (a sigmoid for each class)",
    "regression": "a regression model",
}


def _loss_kind(loss: Any) -> str:
    """``"cross_entropy"``, ``"nll_loss"``, ``"other"`` of torch and timm, or nothing for yours."""
    while isinstance(loss, partial):
        loss = loss.func
    if isinstance(loss, str):
        if loss not in ("cross_entropy", "nll_loss"):
            raise unknown("loss", loss, ("cross_entropy", "nll_loss", "your own function"))
        return loss
    if loss is not None and not callable(loss):
        raise TstarError(f"loss must be a function, a module, or a name, got {shown(loss)}.")
    kinds = (loss if isinstance(loss, type) else type(loss)).__mro__
    known = [kind for kind in kinds if kind.__module__ == torch_losses.__name__]
    name = known[0].__name__ if known else getattr(loss, "__name__", "")
    if {"BinaryCrossEntropy", "AsymmetricLossMultiLabel"} & {kind.__name__ for kind in kinds}:
        return "other"  # timm's
    if not known and (not name or loss is not getattr(functional, name, None)):
        return ""
    softmax = {"CrossEntropyLoss": "cross_entropy", "NLLLoss": "nll_loss"}
    softmax |= {"cross_entropy": "cross_entropy", "nll_loss": "nll_loss", "kl_div": ""}
    return {**softmax, "_Loss": "", "_WeightedLoss": "", "KLDivLoss": ""}.get(name, "other")


def check_task(model: nn.Module, heads: Sequence[Head] = (), loss: Any = None) -> None:
    """Refuse what is not one softmax over the logits, by the loss, a configuration, or its end.

    A loss of torch or timm is recognized by what it is; your own is taken at its word.
    """
    kind = _loss_kind(loss)
    if kind == "nll_loss":
        return
    what = f"the loss {getattr(loss, '__name__', type(loss).__name__)}" if kind == "other" else ""
    for head in heads:
        if "softmax" in head.ends and not what:
            raise TstarError(
                f"The model must return logits, got a softmax after {head.path!r}: cross-entropy "
                "would take a softmax of it a second time. Remove it and train on the logits. If "
                "your loss is the NLL of its logarithm, say loss='nll_loss'."
            )
        if "sigmoid" in head.ends and not kind:
            what = f"a sigmoid after {head.path!r}"
    for module in model.modules() if not kind else ():
        task = getattr(getattr(module, "config", None), "problem_type", None)
        what = _TASKS.get(task, what) if isinstance(task, str) else what
    if what:
        raise TstarError(
            f"A softmax over the classes must follow the logits, got {what}, to which the softmax "
            "temperature does not apply. If you train with cross-entropy on the logits, say "
            "loss='cross_entropy'."
        )
