"""Put the tempered head in the output layer's place, and fold it away again."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, Literal, SupportsFloat

from torch import nn

from tstar.errors import TstarError, TstarWarning
from tstar.surgery.finding import WRAPPERS, Head, check_head, resolve_heads, tempered_heads, unwrap
from tstar.surgery.folded import warn_of_bias
from tstar.surgery.head import Norm, TemperedHead
from tstar.surgery.speed import heard


def temper(
    model: nn.Module,
    temperature: SupportsFloat,
    *,
    head: str | Head | Sequence[str] | None = None,
    example_input: Any = None,
    norm: Norm | Literal["advised"] | None = "advised",
    backbone: float | Literal["matched"] | None = None,
    inplace: bool = False,
) -> nn.Module:
    """The model with BatchNorm inserted just before its output layer and its logits divided by T.

    Device, dtype, train/eval mode, ``requires_grad`` and hooks are kept.

    Args:
        model: any classifier that ends in a linear layer (or a 1×1 convolution).
        temperature: T, or what :func:`tstar.recommend` returns.
        head: the output layer's path, its record, several paths, or ``"all"`` (two-headed models, auxiliary
            classifiers); found by :func:`tstar.find_head` by default.
        example_input: passed to :func:`tstar.find_head`.
        norm: ``"batch"`` as in the paper, ``"layer"``, or ``None`` for the division alone; by default what the advice
            says, or ``"batch"``.
        backbone: how loudly the backbone hears the loss. ``None`` leaves its gradient as it is: divided by T, and with
            BatchNorm by the features' deviation. ``"matched"`` makes it as large as in the plain model, measured on
            ``example_input``, a batch of your training data. A number is c of :class:`tstar.TemperedHead`.
        inplace: change ``model`` itself; otherwise a copy is changed.
    """
    _refuse_wrapper(model)
    if getattr(temperature, "leave", False):  # the advice is to leave the model as it is
        return model if inplace else _copy(model)
    if norm == "advised":
        norm = getattr(temperature, "norm", "batch")
    chosen: Norm | None = norm  # type: ignore[assignment]
    if backbone is None:
        backbone = getattr(temperature, "backbone", None)
    present = tempered_heads(model)
    if present:
        raise TstarError(
            f"The model must not be tempered yet, got one with a tempered head at {next(iter(present))!r}; "
            "use its set_temperature(T) to change T, or tstar.untemper(model) first."
        )
    if (
        getattr(getattr(model, "config", None), "problem_type", None)
        == "multi_label_classification"
    ):
        raise TstarError(
            "A softmax over the classes must follow the logits, got a multi-label model (a sigmoid for each "
            "class), to which the softmax temperature does not apply."
        )
    heads = resolve_heads(
        model, getattr(temperature, "head", None) if head is None else head, example_input
    )
    for found in heads:
        check_head(model, found)
    if inplace and any(found.path == "" for found in heads):
        raise TstarError(
            "A model that is its own output layer cannot be changed in place; use inplace=False."
        )
    factors = [heard(backbone, model, found, example_input, chosen) for found in heads]
    if not inplace:
        model = _copy(model)
    for found, factor in zip(heads, factors, strict=True):
        layer = model.get_submodule(found.path)
        model = _replace(model, layer, TemperedHead(layer, float(temperature), chosen, factor))
    return model


def fold(model: nn.Module, *, inplace: bool = False, allow_bias: bool = False) -> nn.Module:
    """The plain architecture again, with the eval-mode logits of the tempered one and nothing left to deploy.

    The state dict has the original keys and loads into the untouched architecture. An output layer without a
    bias cannot absorb the norm's shift; ``allow_bias=True`` adds one (one new key). ``from_pretrained`` would
    drop that key, so a model with ``save_pretrained`` then warns: :func:`tstar.load_folded` loads it.
    """
    bare = [path for path, head in tempered_heads(unwrap(model)).items() if head.bias is None]
    folded = _dismantle(model, inplace, lambda head: head.fuse(allow_bias=allow_bias))
    warn_of_bias(folded, bare)
    return folded


def untemper(model: nn.Module, *, inplace: bool = False) -> nn.Module:
    """The original layers again, without the norm and without T: other logits, unlike :func:`fold`."""
    return _dismantle(model, inplace, lambda head: head.layer)


def _refuse_wrapper(model: nn.Module) -> None:
    if not isinstance(model, nn.Module):
        raise TstarError(f"The model must be a torch.nn.Module, got {type(model).__name__}.")
    kind = type(model).__name__
    if kind in WRAPPERS:
        why = (
            "the compiled graph is that of the untempered model"
            if kind == "OptimizedModule"
            else "the wrapper has already registered the parameters that it synchronizes"
        )
        raise TstarError(
            f"The model must be tempered before it is wrapped, got {kind}: {why}. Temper the plain model, then wrap it."
        )


def _copy(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model)
    except Exception as error:
        raise TstarError(
            f"The model must be copyable (copy.deepcopy raised {type(error).__name__}: {error}); pass inplace=True."
        ) from error


def _replace(model: nn.Module, old: nn.Module, new: nn.Module) -> nn.Module:
    """``model`` with every place that holds ``old`` holding ``new``; ``new`` itself if ``old`` is the model."""
    if old is model:
        return new
    for parent in list(model.modules()):
        if parent is new:
            continue
        for name, child in list(parent._modules.items()):  # named_children() skips aliases
            if child is old:
                setattr(parent, name, new)
    return model


def _dismantle(model: nn.Module, inplace: bool, make: Any) -> nn.Module:
    model = unwrap(model)
    if not tempered_heads(model):
        raise TstarError(
            "The model must have a tempered head, got one without; call tstar.temper first."
        )
    if not inplace:
        model = _copy(model)
    for path, head in tempered_heads(model).items():
        # PEFT keeps an idle copy of a layer that it trains: that its norm saw nothing is no news.
        idle = path.endswith("original_module")
        with warnings.catch_warnings() if idle else nullcontext():
            if idle:
                warnings.simplefilter("ignore", TstarWarning)
            new = make(head)
        model = _replace(model, head, new)
    return model
