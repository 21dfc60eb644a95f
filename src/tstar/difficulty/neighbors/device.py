"""The same neighbors on a GPU: 8-bit data by products that are exact whatever the precision setting."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tstar.difficulty.neighbors.exact import CHUNK

_CELLS = 1 << 25  # distances held at a time


def nearest_on_device(
    data: Tensor,
    queries: NDArray[np.int64],
    k: int,
    *,
    block: int | None = None,
    tick: Callable[[int], object] = lambda done: None,
) -> NDArray[np.int64]:
    """As :func:`tstar.difficulty.neighbors.nearest` for uint8 data, on the device of ``data``.

    Pixels are whole numbers below 2⁸, which TF32 and bfloat16 hold exactly, and sums of 256 products
    stay below 2²⁴; so every partial product is exact. Distance and position make one key, so that
    ties are broken by position whatever the device's sort does.
    """
    N = len(data)
    squares = torch.cat([_dots(part, None) for part in torch.split(data, 4096)])
    where = torch.as_tensor(queries, device=data.device)
    found = []
    for some in torch.split(where, block or max(1, _CELLS // N)):
        keys = _dots(data[some], data).mul_(-2).add_(squares).add_(squares[some, None])
        keys.mul_(N).add_(torch.arange(N, device=data.device))
        keys.scatter_(1, some[:, None], torch.iinfo(torch.int64).max)
        found.append(keys.topk(k, dim=1, largest=False, sorted=True).values.remainder_(N).cpu())
        tick(len(some))
    return torch.cat(found).numpy()


def _dots(a: Tensor, b: Tensor | None) -> Tensor:
    """a·bᵀ, or the squared lengths of the rows of a, as int64."""
    total: Tensor | None = None
    for start in range(0, a.shape[1], CHUNK):
        left = a[:, start : start + CHUNK].float()
        right = None if b is None else b[:, start : start + CHUNK].float()
        part = left.square().sum(dim=1) if right is None else left @ right.T
        total = part.long() if total is None else total.add_(part.long())
    assert total is not None
    return total
