"""NumPy arrays and torch tensors, whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.reading.images import image_rows, round_unit_images
from tstar.difficulty.reading.rows import Rows
from tstar.errors import TstarError

_BLOCK = 512


def is_tensor(data: Any) -> bool:
    import torch

    return isinstance(data, torch.Tensor)


def to_numpy(data: Any) -> NDArray[np.generic]:
    """A tensor (of any device and dtype) as an array; bfloat16 becomes float32."""
    if not is_tensor(data):
        return np.asarray(data)
    import torch

    data = data.detach()
    return np.asarray((data.float() if data.dtype == torch.bfloat16 else data).cpu().numpy())


def matrix_of(array: NDArray[np.generic], size: int | None, channels_first: bool | None) -> Any:
    """(N, D): features and flat pixels as they are, images by the rules of :mod:`.images`."""
    if array.ndim < 2:
        raise TstarError(
            f"data must have one row a sample, (N, D) or (N, H, W, C), got shape {array.shape}."
        )
    if array.dtype.kind not in "fiub":
        raise TstarError(f"data must hold numbers, got dtype {array.dtype}.")
    if 0 in array.shape:
        raise TstarError(f"data must hold at least two samples, got shape {array.shape}.")
    if not is_image(array):
        return features(array.reshape(len(array), -1))
    rows = Rows(len(array))
    for start in range(0, len(array), _BLOCK):
        block = image_rows(array[start : start + _BLOCK], size, channels_first)
        for row in block if block.dtype == np.uint8 else round_unit_images(block):
            rows.add(row)
    return rows.matrix()


def is_image(batch: NDArray[np.generic]) -> bool:
    """(N, H, W) of whole numbers, or 4 axes. Float (N, A, B) may be anything: taken as it is."""
    return batch.ndim == 4 or (batch.ndim == 3 and batch.dtype.kind in "iu")


def features(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """uint8, float32 and float64 as they are; other numbers as the float that holds them."""
    if array.dtype in (np.uint8, np.float32, np.float64):
        return np.ascontiguousarray(array)
    return array.astype(np.float32 if array.dtype in (np.float16, np.bool_) else np.float64)
