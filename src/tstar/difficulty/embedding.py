"""``embed``: a function or an ``nn.Module`` that turns samples into the vectors to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tstar.data.arrays import from_tensor
from tstar.data.pixels import from_pil, is_pil
from tstar.errors import TstarError

_BATCH = 64
Embed = Callable[[Any], Any]


@contextmanager
def embedder(embed: Embed) -> Iterator[Callable[[list[Any]], NDArray[Any]]]:
    """A function from a batch of samples of one shape to their vectors (B, D).

    A module runs in eval mode, without gradients, on its own device, and gets float32: 8-bit images
    as (B, C, H, W) in [0, 1], everything else as it comes. A function gets the same batch as a tensor.
    Each submodule's training flag is put back.
    """
    import torch

    from tstar.surgery.probing import in_mode

    module = embed if isinstance(embed, torch.nn.Module) else None
    first = next(module.parameters(), None) if module is not None else None

    def run(samples: list[Any]) -> NDArray[Any]:
        batch = torch.stack(samples)
        if first is not None:
            batch = batch.to(first.device)
        with torch.no_grad():
            out = embed(batch)
        out = from_tensor(out, "What embed returns") if torch.is_tensor(out) else np.asarray(out)
        if out.ndim < 2 or len(out) != len(samples) or out.dtype.kind not in "fiu":
            raise TstarError(
                f"embed must return one vector of numbers per sample, but for a batch of {len(samples)} "
                f"it returned {out.dtype} of shape {out.shape}."
            )
        return out.reshape(len(out), -1)

    with nullcontext() if module is None else in_mode(module):
        yield run


def prepared(sample: Any) -> Any:
    """One sample as a tensor: 8-bit images channels first in [0, 1], floats as float32, ids as they are."""
    import torch

    if is_pil(sample):
        sample = from_pil(sample)
    if not isinstance(sample, torch.Tensor):
        array = np.asarray(sample)
        if array.dtype.kind not in "fiub":
            raise TstarError(
                f"A sample must be an image, an array or a tensor, got {type(sample).__name__}."
            )
        if array.ndim == 3 and array.shape[-1] in (1, 3, 4):
            array = np.moveaxis(array, -1, 0)
        sample = torch.from_numpy(np.ascontiguousarray(array))
    if sample.dtype == torch.uint8:
        return sample.float() / 255
    return sample.float() if sample.is_floating_point() else sample


def runs(samples: Iterable[Any]) -> Iterator[list[Any]]:
    """Consecutive samples of one shape, some at a time."""
    batch: list[Any] = []
    for sample in samples:
        if batch and (sample.shape != batch[0].shape or len(batch) == _BATCH):
            yield batch
            batch = []
        batch.append(sample)
    if batch:
        yield batch
