"""``embed``: a function or an ``nn.Module`` that turns samples into the vectors to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tstar.difficulty.reading.arrays import features, to_numpy
from tstar.difficulty.reading.images import from_pil, is_pil
from tstar.errors import TstarError

BATCH = 64
Embed = Callable[[Any], Any]


@contextmanager
def embedder(embed: Embed) -> Iterator[Callable[[list[Any]], NDArray[np.generic]]]:
    """A function from up to ``BATCH`` samples of one shape to their vectors (B, D).

    A module runs in eval mode, without gradients, on its own device, and gets float32: 8-bit images
    as (B, C, H, W) in [0, 1], everything else as it comes. A function gets the same batch as a tensor.
    Each submodule's training flag is put back.
    """
    import torch

    module = embed if isinstance(embed, torch.nn.Module) else None
    modes = {m: m.training for m in module.modules()} if module is not None else {}
    first = next(module.parameters(), None) if module is not None else None

    def run(samples: list[Any]) -> NDArray[np.generic]:
        batch = torch.stack([_tensor(sample) for sample in samples])
        if first is not None:
            batch = batch.to(first.device)
        with torch.no_grad():
            out = to_numpy(embed(batch))
        if out.ndim < 2 or len(out) != len(samples) or out.dtype.kind not in "fiu":
            raise TstarError(
                f"embed must return one vector of numbers a sample, but for a batch of {len(samples)} "
                f"it returned {out.dtype} of shape {out.shape}."
            )
        return features(out.reshape(len(out), -1))

    try:
        if module is not None:
            module.eval()
        yield run
    finally:
        for part, mode in modes.items():
            part.training = mode


def _tensor(sample: Any) -> Any:
    """One sample as a float tensor: 8-bit images channels first in [0, 1], numbers as they come."""
    import torch

    if is_pil(sample):
        sample = from_pil(sample)
    if not isinstance(sample, torch.Tensor):
        array = np.asarray(sample)
        if array.ndim == 3 and array.shape[-1] in (1, 3, 4):
            array = np.moveaxis(array, -1, 0)
        sample = torch.from_numpy(np.ascontiguousarray(array))
    if sample.dtype == torch.uint8:
        return sample.float() / 255
    return sample.float() if sample.is_floating_point() else sample
