"""A model that was left as it is, on advice: the mark it gets, by which what handles tempered models lets it pass.

Pure Python, as :class:`tstar.Schedule` is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tstar.errors import TstarError

if TYPE_CHECKING:
    from torch import nn


def mark_left(layer: nn.Module) -> None:
    """Mark an output layer, where a wrapper around the model and a copy of it keep the mark."""
    layer.left_plain = True  # type: ignore[assignment]


def unmark_left(layer: nn.Module) -> None:
    """Take the mark away, of a layer that is tempered after all."""
    vars(layer).pop("left_plain", None)


def expect_left(model: nn.Module) -> None:
    """Refuse a model without a tempered head, unless :func:`tstar.temper` left it on advice: then there is nothing to do."""
    if not any(getattr(module, "left_plain", False) for module in model.modules()):
        raise TstarError("The model has no tempered head; call tstar.temper first.")
