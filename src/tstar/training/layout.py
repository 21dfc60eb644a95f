"""Channels-last, the layout that convolutions are fastest in, with a way around a fault of oneDNN."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

# oneDNN's blocks of input channels: 8 with AVX2, 16 with AVX-512.
_BLOCK = 16


@contextmanager
def channels_last(model: nn.Module, images: bool) -> Iterator[None]:
    """Inside, the model's weights are channels-last, where its inputs are images.

    On CPUs the weight gradient of a strided 1×1 convolution with fewer input channels than oneDNN's
    block writes past its buffer in this layout (oneDNN issue 6035): wrong gradients or a crash. Those
    few layers keep the plain layout, whatever the machine, so that results agree between machines.
    """
    if not images:
        yield
        return
    model.to(memory_format=torch.channels_last)
    handles = []
    for module in model.modules():
        if _affected(module):
            assert isinstance(module, nn.Conv2d)
            module.weight.data = _plain(module.weight.data)
            handles.append(module.register_forward_pre_hook(_plain_inputs))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _affected(module: nn.Module) -> bool:
    return (
        isinstance(module, nn.Conv2d)
        and module.kernel_size == (1, 1)
        and max(module.stride) > 1
        and module.in_channels // module.groups < _BLOCK
    )


def _plain(tensor: Tensor) -> Tensor:
    # .contiguous() would keep the strides of a tensor that counts as both, such as any 1×1 weight.
    return tensor.clone(memory_format=torch.contiguous_format)


def _plain_inputs(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return (_plain(inputs[0]), *inputs[1:])
