"""Checkpoints of tempered models, folded without the model's code: what ``tstar fold`` does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from tstar.errors import TstarError, guarded
from tstar.head import TemperedHead, owns_numbers
from tstar.imports import require

State = dict[str, Tensor]
_LAYERS = {2: nn.Linear, 3: nn.Conv1d, 4: nn.Conv2d, 5: nn.Conv3d}


def read_tensors(path: Path) -> tuple[Any, dict[str, str]]:
    """What a file of weights holds, and its metadata. Nothing is unpickled."""
    if path.suffix != ".safetensors":
        return torch.load(path, map_location="cpu", weights_only=True), {}
    with require("safetensors", "text").safe_open(path, framework="pt") as file:
        names = [*file.keys()]
        return {name: file.get_tensor(name) for name in names}, file.metadata() or {}


def tempered_prefixes(state: Mapping[str, Any]) -> list[str]:
    """The paths (with a final dot) under which a state dict holds a tempered head."""
    keys = [key for key in state if isinstance(key, str)]
    ends = [key.removesuffix("temperature") for key in keys if key.split(".")[-1] == "temperature"]
    return [prefix for prefix in ends if f"{prefix}layer.weight" in state]


def fold_state_dict(
    state: Mapping[str, Tensor], *, eps: float = 1e-5, allow_bias: bool = False
) -> State:
    """The plain architecture's state dict: original keys and order, with the tempered logits.

    Args:
        state: the state dict of a tempered model.
        eps: ε of the inserted norm, which a state dict does not hold; 1e-5 unless it was changed.
        allow_bias: give an output layer without a bias one (one new key).
    """
    prefixes = tempered_prefixes(state)
    if not prefixes:
        raise TstarError(
            "No tempered head found in the checkpoint (keys that end in 'temperature' and "
            "'layer.weight'); it may be folded already."
        )
    plain: State = {}
    done: set[str] = set()
    for key, value in state.items():
        prefix = next((p for p in prefixes if str(key).startswith(p)), None)
        if prefix is None:
            plain[key] = value
        elif prefix not in done:
            done.add(prefix)
            head = _head(state, prefix, eps)
            folded = head.fuse(allow_bias, path=prefix.rstrip(".")).state_dict()
            plain |= {prefix + name: tensor for name, tensor in folded.items()}
    return plain


def _head(state: Mapping[str, Tensor], prefix: str, eps: float) -> TemperedHead:
    """The tempered head that a state dict describes, rebuilt."""
    own = {key.removeprefix(prefix): v for key, v in state.items() if str(key).startswith(prefix)}
    for key, value in own.items():
        if not isinstance(value, Tensor) or value.is_quantized or not owns_numbers(value):
            raise TstarError(f"{prefix}{key} must be a plain tensor with its own numbers.")
    weight, norm = own["layer.weight"], "norm.running_mean" in own
    with guarded(f"The checkpoint must hold a whole tempered head: {prefix}layer.weight, …"):
        size = (*reversed(weight.shape[:2]), *weight.shape[2:3])
        layer = _LAYERS[weight.ndim](*size, bias="layer.bias" in own, dtype=weight.dtype)
        head = TemperedHead(layer, 1.0, "batch" if norm else None)
        if isinstance(head.norm, _BatchNorm):
            head.norm.eps = eps
        head.load_state_dict({**own, "temperature": own["temperature"].reshape(())})
    return head.eval()
