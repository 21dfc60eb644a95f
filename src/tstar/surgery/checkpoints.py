"""Fold a saved tempered model without its code: from the tensors of its state dict alone."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from tstar.errors import TstarError, TstarWarning
from tstar.surgery.head import Norm, TemperedHead

State = dict[str, Tensor]
_LAYERS = {2: nn.Linear, 3: nn.Conv1d, 4: nn.Conv2d, 5: nn.Conv3d}


def tempered_prefixes(state: Mapping[str, Any]) -> list[str]:
    """The paths (with a final dot) under which a state dict holds a tempered head."""
    keys = [key for key in state if isinstance(key, str)]
    ends = [key.removesuffix("temperature") for key in keys if key.split(".")[-1] == "temperature"]
    return [prefix for prefix in ends if f"{prefix}layer.weight" in state]


def fold_state_dict(
    state: Mapping[str, Tensor], *, eps: float = 1e-5, allow_bias: bool = False
) -> State:
    """The plain architecture's state dict: original keys, in the original order, with the tempered logits.

    Args:
        state: the state dict of a tempered model.
        eps: ε of the inserted norm, which a state dict does not hold; 1e-5 unless it was changed.
        allow_bias: give an output layer without a bias one (one new key).
    """
    prefixes = tempered_prefixes(state)
    if not prefixes:
        raise TstarError(
            "No tempered head found in the checkpoint (keys that end in 'temperature' and 'layer.weight'); it may be "
            "folded already."
        )
    plain: State = {}
    done: set[str] = set()
    for key, value in state.items():
        prefix = next((p for p in prefixes if str(key).startswith(p)), None)
        if prefix is None:
            plain[key] = value
        elif prefix not in done:
            done.add(prefix)
            folded = (
                _head(state, prefix, eps).fuse(allow_bias, path=prefix.rstrip(".")).state_dict()
            )
            plain |= {prefix + name: tensor for name, tensor in folded.items()}
    return plain


def _head(state: Mapping[str, Tensor], prefix: str, eps: float) -> TemperedHead:
    """The tempered head that a state dict describes, rebuilt."""
    own = {
        key.removeprefix(prefix): value
        for key, value in state.items()
        if isinstance(key, str) and key.startswith(prefix)
    }
    for name, value in own.items():
        _check_tensor(f"{prefix}{name}", value)
    if own["temperature"].numel() != 1:
        raise TstarError(
            f"{prefix}temperature must be one number, got {own['temperature'].numel()}."
        )
    own["temperature"] = own["temperature"].reshape(())
    weight = own["layer.weight"]
    if weight.ndim not in _LAYERS or math.prod(weight.shape[2:]) != 1:
        raise TstarError(
            "The output layer must be linear or a convolution of kernel size 1, got a weight of shape "
            f"{tuple(weight.shape)} at {prefix}layer.weight."
        )
    if not weight.is_floating_point():
        raise TstarError(f"{prefix}layer.weight must be in floating point, got {weight.dtype}.")
    kernel = () if weight.ndim == 2 else (1,)
    layer = _LAYERS[weight.ndim](
        weight.shape[1], weight.shape[0], *kernel, bias="layer.bias" in own, dtype=weight.dtype
    )
    norm: Norm | None = "batch" if "norm.running_mean" in own else None
    if norm is None and "norm.weight" in own:
        raise TstarError(
            f"A layer norm cannot be folded (at {prefix}norm): it depends on the sample. Load the checkpoint into the "
            "tempered model and use tstar.fold, which keeps it as a layer."
        )
    head = TemperedHead(layer, 1.0, norm)
    if isinstance(head.norm, nn.modules.batchnorm._BatchNorm):
        head.norm.eps = eps
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TstarWarning)  # T = 1 is ours, not the user's
            head.load_state_dict(own)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise TstarError(
            f"The checkpoint must hold a whole tempered head at {prefix!r}, but {error}"
        ) from error
    return head.eval()


def _check_tensor(key: str, value: object) -> None:
    """Refuse what is no plain tensor with memory of its own."""
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.is_quantized:
        raise TstarError(f"{key} must be a plain tensor, got {type(value).__name__}.")
    if (
        not value.is_meta
        and value.untyped_storage().nbytes() < value.numel() * value.element_size()
    ):
        raise TstarError(
            f"{key} must hold its own numbers, got a tensor that repeats a few of them."
        )


def find_state_dict(saved: Any, key: str | None = None) -> Mapping[str, Tensor]:
    """The tempered state dict in what a trainer saved: itself, or the one entry that is one.

    Trainers save more than weights ({"state_dict": …, "epoch": …}). Where several entries are tempered (a
    model and its moving average), ``key`` chooses.
    """
    if not isinstance(saved, Mapping):
        raise TstarError(
            f"A checkpoint must be a state dict, or a dict that holds one, got {type(saved).__name__}."
        )
    if key is not None:
        if not isinstance(saved.get(key), Mapping):
            raise TstarError(
                f"--key must name a state dict in the checkpoint, got {key!r}; it has {list(saved)}."
            )
        return saved[key]  # type: ignore[no-any-return]
    if tempered_prefixes(saved):
        return saved
    inside = [k for k, v in saved.items() if isinstance(v, Mapping) and tempered_prefixes(v)]
    if len(inside) > 1:
        raise TstarError(
            f"Found {len(inside)} tempered state dicts ({inside}); pass --key to choose one."
        )
    return saved[inside[0]] if inside else saved


def tensors_of(state: Mapping[str, Any]) -> State:
    """The tensors alone, each with memory of its own, as the safetensors format wants them."""
    return {
        k: v.detach().clone().contiguous() for k, v in state.items() if isinstance(v, torch.Tensor)
    }
