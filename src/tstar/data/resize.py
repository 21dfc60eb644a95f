"""Area averaging: the one way in which images change their size here."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from tstar.data.validation import positive

_CHUNK = 1 << 24  # values turned to float at once: bounds the memory of large data sets


@lru_cache(maxsize=256)
def overlap(old: int, new: int) -> Tensor:
    """A (new×old): A[i, j] is the share of output pixel i that input pixel j covers.

    Output pixel i covers [i, i+1)·old/new of the input, so A[i, j] is the length of its
    intersection with [j, j+1), divided by old/new. Rows sum to 1.
    """
    scale = old / new
    start = torch.arange(new, dtype=torch.float64)[:, None] * scale
    pixel = torch.arange(old, dtype=torch.float64)[None, :]
    length = torch.minimum(start + scale, pixel + 1) - torch.maximum(start, pixel)
    return (length.clamp_min(0) / scale).float()


def area_resize(images: Tensor, size: int) -> Tensor:
    """uint8 images …×C×H×W as …×C×size×size; each pixel is the mean of the area it covers.

    Exact for fractional factors. The whole image is kept: other aspect ratios are squashed. An
    image of that size is returned as it is.
    """
    positive("size", size)
    height, width = images.shape[-2:]
    if (height, width) == (size, size):
        return images
    rows, columns = overlap(height, size), overlap(width, size)
    result = torch.empty((*images.shape[:-2], size, size), dtype=torch.uint8)
    flat, out = images.reshape(-1, height, width), result.view(-1, size, size)
    step = max(1, _CHUNK // (height * width))
    for first in range(0, len(flat), step):
        part = flat[first : first + step].float()
        out[first : first + step] = (rows @ part @ columns.T).round_().clamp_(0, 255)
    return result
