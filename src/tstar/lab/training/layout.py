"""Channels-last, in which convolutions are fastest, with a way around a fault of oneDNN."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

# oneDNN's blocks of input channels: 8 with AVX2, 16 with AVX-512.
_BLOCK = 16
# Networks with a narrower layer are slower in channels-last (measured on one AVX2 thread).
_NARROWEST = 8


@contextmanager
def channels_last(model: nn.Module, images: bool) -> Iterator[None]:
    """Inside, the model's weights and inputs are channels-last if images and layers allow it.

    On CPUs the weight gradient of a strided 1×1 convolution with fewer input channels than oneDNN's
    block writes past its buffer in this layout (oneDNN issue 6035): wrong gradients or a crash.
    Those few layers keep the plain layout on every machine.
    """
    layers = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    if not images or min((layer.out_channels for layer in layers), default=0) < _NARROWEST:
        yield
        return
    model.to(memory_format=torch.channels_last)
    handles = [model.register_forward_pre_hook(_last)]
    for layer in layers:
        affected = layer.kernel_size == (1, 1) and max(layer.stride) > 1
        if affected and layer.in_channels // layer.groups < _BLOCK:
            layer.weight.data = _plain(layer.weight.data)
            handles.append(
                layer.register_forward_pre_hook(lambda _, inputs: (_plain(inputs[0]), *inputs[1:]))
            )
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _plain(tensor: Tensor) -> Tensor:
    # .contiguous() would keep the strides of a tensor that counts as both, such as any 1×1 weight.
    return tensor.clone(memory_format=torch.contiguous_format)


def _last(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return (inputs[0].contiguous(memory_format=torch.channels_last), *inputs[1:])
