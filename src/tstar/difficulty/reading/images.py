"""How images become rows of numbers.

- 8-bit images (PIL, uint8 arrays and tensors; other whole numbers within 0–255) stay 8-bit: 0–255
  stands for [0, 1]. PIL images are converted to RGB first.
- Floating-point images within [0, 1] are rounded to 8 bits (value·255), so that ``ToTensor()`` and the
  file itself give the same row, in a quarter of the memory.
- Other floating-point images (normalised ones) stay float32; differences are measured relative to the
  range of the whole data set, which changes no neighbour.
- ``size`` brings every image to size×size by averaging areas; ``None`` leaves it as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tstar.errors import TstarError

_CHANNELS = (1, 3, 4)


def is_pil(sample: Any) -> bool:
    return hasattr(sample, "convert") and hasattr(sample, "getbands")


def from_pil(image: Any) -> NDArray[np.uint8]:
    """(H, W, 3) 8-bit RGB. 16-bit greys are reduced; their conversion by PIL would clip them."""
    if image.mode.startswith("I;16"):
        grey = (np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8)
        return np.repeat(grey[:, :, None], 3, axis=2)
    if image.mode in ("I", "F"):
        raise TstarError(
            f"A PIL image must be 8- or 16-bit, got mode {image.mode!r}; scale and convert it first."
        )
    return np.asarray(image.convert("RGB"), dtype=np.uint8)


def image_rows(
    images: NDArray[np.generic], size: int | None, channels_first: bool | None = None
) -> NDArray[np.generic]:
    """(N, D) uint8 or float32 from a batch (N, H, W), (N, H, W, C) or (N, C, H, W)."""
    batch = _bytes_or_floats(images)
    batch = batch[:, None] if batch.ndim == 3 else _to_channels_first(batch, channels_first)
    reduced = batch if size is None or batch.shape[2:] == (size, size) else _reduce(batch, size)
    return np.ascontiguousarray(reduced).reshape(len(reduced), -1)


def round_unit_images(rows: NDArray[np.generic]) -> list[NDArray[np.generic]]:
    """Each row on its own: 8-bit where it lies within [0, 1], else as it is."""
    inside = (np.greater_equal(rows, 0) & np.less_equal(rows, 1)).all(axis=1)
    return [
        np.rint(row * 255).astype(np.uint8) if unit else row
        for row, unit in zip(rows, inside, strict=True)
    ]


def _bytes_or_floats(images: NDArray[np.generic]) -> NDArray[np.generic]:
    if images.dtype == np.uint8:
        return images
    if images.dtype.kind == "f":
        return images.astype(np.float32)
    if images.dtype.kind not in "iu" or images.min(initial=0) < 0 or images.max(initial=0) > 255:
        raise TstarError(
            f"Whole-number images must lie within 0–255, got {images.dtype} from "
            f"{images.min(initial=0)} to {images.max(initial=0)}; scale them to [0, 1] as floats."
        )
    return images.astype(np.uint8)


def _to_channels_first(batch: NDArray[np.generic], known: bool | None) -> NDArray[np.generic]:
    """(N, C, H, W), from where 1, 3 or 4 channels are seen; ``known`` where both ends could be."""
    first, last = batch.shape[1] in _CHANNELS, batch.shape[-1] in _CHANNELS
    if not first and not last:
        raise TstarError(
            f"Images must have 1, 3 or 4 channels first or last, got samples of shape "
            f"{batch.shape[1:]}; flatten them to (N, D) to compare them as they are."
        )
    if first and (not last or known):
        return batch
    return np.moveaxis(batch, -1, 1)


def _reduce(batch: NDArray[np.generic], size: int) -> NDArray[np.generic]:
    """Area averaging: each new pixel is the mean of the old ones that it covers."""
    import torch
    from torch.nn.functional import adaptive_avg_pool2d

    pixels = torch.from_numpy(np.ascontiguousarray(batch)).float()
    reduced = adaptive_avg_pool2d(pixels, (size, size)).numpy()
    return np.rint(reduced).astype(np.uint8) if batch.dtype == np.uint8 else reduced
