"""Inputs that common models accept, for finding the head of a model that came without an example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

_CHEAP = 30_000_000  # parameters: one run of such a model on two samples takes well under a second
_IMAGE_SIZES = (32, 64, 224, 96, 128, 299, 256, 384, 16)


def standard_inputs(model: nn.Module) -> Iterator[Any]:
    """Likely inputs of ``model``, the likeliest first: what its library declares, then what its first layer takes."""
    like = next((p for p in model.parameters() if p.is_floating_point()), None)
    if like is None:
        return
    yield from _transformers(model, like)
    yield from _timm(model, like)
    for layer in model.modules():
        inputs = list(_for_layer(layer, like))
        if inputs:
            yield from inputs
            return


def cheap_inputs(model: nn.Module) -> Iterator[Any]:
    """The standard inputs of a model that one run of costs little; of a larger one, none."""
    small = sum(p.numel() for p in model.parameters()) < _CHEAP
    return standard_inputs(model) if small else iter(())


def _transformers(model: nn.Module, like: Tensor) -> Iterator[dict[str, Tensor]]:
    name, config = getattr(model, "main_input_name", None), getattr(model, "config", None)
    if not isinstance(name, str) or config is None:
        return
    for batch in (2, 1):  # decoders without a padding token take one sequence only
        if name == "input_ids":
            ids = torch.randint(3, 10, (batch, 8), generator=_generator(), device="cpu")
            end = getattr(config, "eos_token_id", None)
            if isinstance(end, int):  # BART and T5 classify at the last end-of-sequence token
                ids[:, -1] = end
            ids = ids.to(like.device)
            yield {name: ids}
            yield {name: ids, "bbox": ids.new_zeros(*ids.shape, 4)}  # readers of documents
        elif name == "pixel_values":
            yield from _patches(config, batch, like)
            size = getattr(config, "image_size", None) or 224
            height, width = size if isinstance(size, list | tuple) else (size, size)
            yield {
                name: _noise(
                    (batch, getattr(config, "num_channels", None) or 3, height, width), like
                )
            }
        else:  # audio: raw waveform, (frames, mel bins), or Whisper's (mel bins, frames)
            yield {name: _noise((batch, 16000), like)}
            mels = (
                getattr(config, "num_mel_bins", None)
                or getattr(config, "feature_projection_input_dim", None)
                or 128
            )
            yield {name: _noise((batch, getattr(config, "max_length", None) or 1024, mels), like)}
            positions = getattr(config, "max_source_positions", None) or 1500
            yield {name: _noise((batch, mels, 2 * positions), like)}


def _patches(config: Any, batch: int, like: Tensor) -> Iterator[dict[str, Tensor]]:
    """Images already cut into patches, as SigLIP 2 takes them: 4×4 patches, each flattened."""
    vision = getattr(config, "vision_config", None)
    size = getattr(vision, "patch_size", None)
    if not isinstance(size, int) or not hasattr(vision, "num_patches"):
        return
    values = _noise((batch, 16, (getattr(vision, "num_channels", None) or 3) * size**2), like)
    shapes = torch.full((batch, 2), 4, device=like.device)
    mask = torch.ones(batch, 16, dtype=torch.long, device=like.device)
    yield {"pixel_values": values, "pixel_attention_mask": mask, "spatial_shapes": shapes}


def _timm(model: nn.Module, like: Tensor) -> Iterator[Tensor]:
    declared = getattr(model, "pretrained_cfg", None) or getattr(model, "default_cfg", None)
    if isinstance(declared, Mapping) and declared.get("input_size"):
        yield _noise((2, *declared["input_size"]), like)


def _for_layer(layer: nn.Module, like: Tensor) -> Iterator[Tensor]:
    if isinstance(layer, nn.Conv2d):
        for size in _IMAGE_SIZES:
            yield _noise((2, layer.in_channels, size, size), like)
    elif isinstance(layer, nn.Conv1d):
        for length in (128, 1024, 16000):
            yield _noise((2, layer.in_channels, length), like)
    elif isinstance(layer, nn.Conv3d):
        yield _noise((2, layer.in_channels, 16, 112, 112), like)
    elif isinstance(layer, nn.Linear):
        yield _noise((2, layer.in_features), like)
        yield _noise((2, 8, layer.in_features), like)
    elif isinstance(layer, nn.Embedding):
        yield torch.zeros((2, 8), dtype=torch.long, device=like.device)
    elif isinstance(layer, nn.RNNBase):
        yield _noise((2, 16, layer.input_size), like)


def _noise(shape: tuple[int, ...], like: Tensor) -> Tensor:
    return torch.randn(shape, generator=_generator()).to(like)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
