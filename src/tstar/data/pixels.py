"""How images become arrays of pixels, channels first.

- 8-bit images (PIL, uint8 arrays and tensors; other whole numbers within 0–255) stay 8-bit: 0–255
  stands for [0, 1]. PIL images are converted to RGB first.
- Floating-point images within [0, 1] are rounded to 8 bits (value·255), so that ``ToTensor()`` and the
  file itself give the same pixels, in a quarter of the memory.
- Other floating-point images (normalized ones) stay float32.
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
    """(H, W, 3) 8-bit RGB. 16-bit grays are reduced; their conversion by PIL would clip them."""
    if image.mode.startswith("I;16"):
        gray = (np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8)
        return np.repeat(gray[:, :, None], 3, axis=2)
    if image.mode in ("I", "F"):
        raise TstarError(
            f"A PIL image must be 8- or 16-bit, got mode {image.mode!r}; scale and convert it first."
        )
    return np.asarray(image if image.mode == "RGB" else image.convert("RGB"), dtype=np.uint8)


def is_image(batch: NDArray[Any]) -> bool:
    """(N, H, W) of whole numbers, or 4 axes. Float (N, A, B) may be anything: taken as it is."""
    return batch.ndim == 4 or (batch.ndim == 3 and batch.dtype.kind in "iu")


def pixels(images: NDArray[Any], prefer_first: bool = False) -> NDArray[Any]:
    """(N, C, H, W) uint8 or float32 from a batch (N, H, W), (N, H, W, C) or (N, C, H, W)."""
    batch = images[:, None] if images.ndim == 3 else channels_first(images, prefer_first)
    if batch.dtype == np.uint8:
        return batch
    if batch.dtype.kind != "f":
        low, high = batch.min(initial=0), batch.max(initial=0)
        if batch.dtype.kind not in "iu" or low < 0 or high > 255:
            raise TstarError(
                f"Whole-number images must lie within 0–255, got {batch.dtype} from {low} to {high}; "
                "scale them to [0, 1] as floats."
            )
        return batch.astype(np.uint8)
    batch = batch.astype(np.float32)
    inside = ((batch >= 0) & (batch <= 1)).reshape(len(batch), -1).all(axis=1)
    if inside.all():
        rounded: NDArray[Any] = np.rint(batch * 255).astype(np.uint8)
        return rounded
    batch[inside] = np.rint(batch[inside] * 255) / np.float32(255)
    return batch


def channels_first(batch: NDArray[Any], prefer_first: bool) -> NDArray[Any]:
    """(N, C, H, W), from where 1, 3 or 4 channels are seen; the preference counts where both ends could be."""
    first, last = batch.shape[1] in _CHANNELS, batch.shape[-1] in _CHANNELS
    if not first and not last:
        raise TstarError(
            f"Images must have 1, 3 or 4 channels first or last, got samples of shape "
            f"{batch.shape[1:]}; flatten them to (N, D) to compare them as they are."
        )
    return batch if first and (not last or prefer_first) else np.moveaxis(batch, -1, 1)
