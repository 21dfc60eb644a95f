"""Keep padded tokens out of the norm's statistics when a head classifies every token."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

from tstar.errors import TstarError
from tstar.surgery import tempered_heads


def mask_padding(model: nn.Module, keyword: str = "attention_mask") -> RemovableHandle:
    """From now on, each call's ``keyword`` argument says which positions the tempered heads normalise over.

    For heads with features of shape (B, L, M), such as token classification. Positions whose mask is zero
    count in no statistic; in training their logits are the bias over T, which a loss that ignores them does
    not see. Eval mode and folding are unaffected. A call without the argument normalises over all.

    Returns a handle whose ``remove()`` ends it.
    """
    heads = list(tempered_heads(model).values())
    if not heads:
        raise TstarError(
            "The model must have a tempered head, got one without; call tstar.temper first."
        )

    def take(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for head in heads:
            head.mask = kwargs.get(keyword)

    return model.register_forward_pre_hook(take, with_kwargs=True)
