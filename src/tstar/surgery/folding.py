"""The algebra that folds norm and temperature into the output layer, and the numbers that it refuses."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from tstar.errors import TstarError, TstarWarning
from tstar.surgery.layers import check_norm


def affine_of_norm(norm: Any, like: Tensor) -> tuple[Tensor, Tensor | None]:
    """The (scale, shift) that a norm in eval mode applies to each feature, in float64.

    BatchNorm: s = γ/sqrt(σ² + ε), t = β − s⊙μ. LayerNorm's affine part: s = γ, t = β. A norm that is
    absent scales by one and shifts by nothing.
    """
    one = torch.ones(like.shape[1], dtype=torch.float64, device=_exact(like).device)
    if norm is None:
        return one, None
    if not isinstance(norm, nn.LayerNorm):
        check_norm(norm)
    gamma = _exact(norm.weight) if norm.weight is not None else one
    beta = _exact(norm.bias) if norm.bias is not None else torch.zeros_like(one)
    if isinstance(norm, nn.LayerNorm):
        return gamma, beta
    if norm.running_mean is None or norm.running_var is None:
        raise TstarError(
            "A BatchNorm needs running statistics to fold, got one with track_running_stats=False."
        )
    seen = getattr(norm, "num_batches_tracked", None)
    if seen is not None and not seen.is_meta and int(seen) == 0:
        warnings.warn(
            "The norm before the output layer has never seen a training batch: its statistics are the "
            "initial ones. Train, or load a trained checkpoint, before folding.",
            TstarWarning,
            stacklevel=3,
        )
    scale = gamma / torch.sqrt(_exact(norm.running_var) + norm.eps)
    return scale, beta - scale * _exact(norm.running_mean)


def fold_affine(
    weight: Tensor, bias: Tensor | None, scale: Tensor, shift: Tensor | None, temperature: Tensor
) -> tuple[Tensor, Tensor]:
    """(W·(s⊙h + t) + b)/T as one affine map of h: W′ = W·diag(s)/T, b′ = (W·t + b)/T.

    Symbols: W is (K, M) or (K, M, 1, …), b (K,), s and t (M,). Computed in float64, given in W's dtype.
    """
    T = _exact(temperature)
    W = _exact(weight).reshape(weight.shape[0], weight.shape[1])
    b = torch.zeros_like(W[:, 0]) if bias is None else _exact(bias)
    moved = b if shift is None else W @ shift + b
    return (W * scale / T).reshape(weight.shape).to(weight), (moved / T).to(weight)


def _exact(tensor: Tensor) -> Tensor:
    """In float64 on the CPU, where every device's numbers can be held exactly; shapes alone stay on meta."""
    return tensor.detach().to("meta" if tensor.is_meta else "cpu").to(torch.float64)


def check_numbers(path: str, head: nn.Module, why: str = "The head cannot be folded") -> None:
    """Refuse what would make unusable weights: a T that is none, NaN, a negative variance."""
    for name, tensor in head.state_dict(keep_vars=True).items():
        key = f"{path}.{name}".lstrip(".")
        if tensor.is_meta or not tensor.is_floating_point():
            continue
        if not bool(torch.isfinite(_exact(tensor)).all()):
            raise TstarError(f"{why}: {key} holds NaN or infinity.")
        if name in ("temperature", "backbone") and not bool((tensor > 0).all()):
            raise TstarError(f"{why}: {key} must be positive, got {float(tensor):g}.")
        if name.endswith("running_var") and bool((tensor < 0).any()):
            raise TstarError(f"{why}: {key} holds a negative variance.")
