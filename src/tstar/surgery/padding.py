"""Keep padded tokens out of the norm's statistics when a head classifies every token."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

from torch import nn

from tstar.errors import TstarError
from tstar.surgery.finding import tempered_heads
from tstar.surgery.leaving import expect_left


class Masking:
    """What :func:`mask_padding` began; ``remove()`` ends it."""

    def __init__(self, model: nn.Module, keyword: str) -> None:
        self._model = model
        self._hook = model.register_forward_pre_hook(partial(_take, keyword), with_kwargs=True)

    def remove(self) -> None:
        self._hook.remove()
        _set(self._model, None)


def mask_padding(model: nn.Module, keyword: str = "attention_mask") -> Masking:
    """From now on, each call's ``keyword`` argument says which positions the tempered heads normalize over.

    For heads with features of shape (B, L, M): token classification, and the decoders that score every token
    and keep the last one's logits. Positions whose mask is zero count in no statistic; in training their logits
    are the bias over T, which a loss that ignores them does not see. Eval mode and folding are unaffected. A call
    without the argument normalizes over all positions.

    Call it on the model that the training loop calls, after adding adapters: PEFT's wrapper runs the model inside
    it without its hooks.

    Args:
        model: a tempered model.
        keyword: the argument of its ``forward``, given by name or by position (by name through a wrapper such as
            DDP), that holds the (B, L) mask.
    """
    if not tempered_heads(model):
        expect_left(model)
    names = inspect.signature(model.forward).parameters
    if keyword not in names and not any(p.kind is p.VAR_KEYWORD for p in names.values()):
        raise TstarError(
            f"keyword must name an argument of the model's forward, got {keyword!r}; it has "
            f"{', '.join(map(repr, names)) or 'none'}."
        )
    return Masking(model, keyword)


def _take(keyword: str, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Before each call: hand the mask on. The heads are looked up each time, since a copy has its own."""
    mask = kwargs.get(keyword)
    if mask is None and args:
        given = dict(zip(inspect.signature(model.forward).parameters, args, strict=False))
        mask = given.get(keyword)
    _set(model, mask)


def _set(model: nn.Module, mask: Any) -> None:
    for head in tempered_heads(model).values():
        head.mask = mask
