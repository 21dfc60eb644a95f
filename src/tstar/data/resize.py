"""Area averaging: the one way in which images change their size here."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from tstar.data.limits import check_resized
from tstar.numbers import whole

_CHUNK = 1 << 24  # values turned to float at once: bounds the memory of large data sets and images


@lru_cache(maxsize=256)
def overlap(old: int, new: int) -> Tensor:
    """A (new×old): A[i, j] is the length that output pixel i and input pixel j share.

    Measured in 1/new of an input pixel, so that all lengths are whole numbers: output pixel i covers
    [i, i+1)·old, input pixel j covers [j, j+1)·new. Rows sum to ``old``.
    """
    start = torch.arange(new)[:, None] * old
    pixel = torch.arange(old)[None, :] * new
    length = torch.minimum(start + old, pixel + new) - torch.maximum(start, pixel)
    return length.clamp_min(0).double()


def area_resize(images: Tensor, size: int) -> Tensor:
    """Images …×C×H×W as …×C×size×size; each pixel is the mean of the area it covers.

    uint8 stays uint8, and the sums are whole numbers that the float type holds exactly: the result does not
    depend on batches, threads or machine. The whole image is kept: other aspect ratios are
    squashed. An image of that size is returned as it is.
    """
    whole("size", size, least=1)
    height, width = images.shape[-2:]
    if (height, width) == (size, size):
        return images
    check_resized(images.numel(), size, height * width)
    bytes_ = images.dtype == torch.uint8
    dtype = torch.float32 if bytes_ and 255 * height * width < 2**24 else torch.float64
    rows, columns = overlap(height, size).to(dtype), overlap(width, size).to(dtype).T
    result = torch.empty((*images.shape[:-2], size, size), dtype=images.dtype)
    flat, out = images.reshape(-1, height, width), result.view(-1, size, size)
    step, strip = max(1, _CHUNK // (height * width)), max(1, _CHUNK // width)
    for first in range(0, len(flat), step):
        part = flat[first : first + step]
        total = torch.zeros((len(part), size, size), dtype=dtype)
        for top in range(0, height, strip):
            bottom = top + strip
            total += rows[:, top:bottom] @ (part[:, top:bottom].to(dtype) @ columns)
        total /= height * width
        out[first : first + step] = total.round_() if bytes_ else total
    return result
