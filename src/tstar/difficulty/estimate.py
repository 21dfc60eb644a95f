"""``tstar.csg``: the steps in order.

The protocol (250 samples per class, 5 neighbors, Euclidean distance, pixels in [0, 1], images at
32×32) was found by measuring: the paper says neither size nor numbers, and with these csg comes
within 0.17 of the printed ln(csg) on seven of its data sets; with 3 neighbors it does not.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tstar.bars import progress
from tstar.difficulty.draw import draw
from tstar.difficulty.embedding import Embed
from tstar.difficulty.expectation import expectation, sample_weights
from tstar.difficulty.gradient import cumulative_gradient
from tstar.difficulty.interval import bootstrap, over_draws
from tstar.difficulty.laplacian import laplacian
from tstar.difficulty.matrix import Matrix, read
from tstar.difficulty.neighbors import nearest
from tstar.difficulty.record import Csg, presented
from tstar.difficulty.similarity import similarity
from tstar.difficulty.volume import FLOOR, log_volumes
from tstar.errors import TstarError, unknown
from tstar.numbers import whole

_MOST_REPEATS = 10_000
DISTANCES = ("euclidean", "cosine")


def csg(
    data: Any,
    labels: Any = None,
    *,
    samples: int = 250,
    neighbors: int = 5,
    seed: int = 0,
    size: int | None = 32,
    embed: Embed | None = None,
    distance: str = "euclidean",
    repeats: int = 1,
    skip_unreadable: bool = False,
    limit: int | None = None,
    root: str | os.PathLike[str] | None = None,
) -> Csg:
    """The cumulative spectral gradient of a data set: how hard its classes are to tell apart.

    0 for perfectly separated classes, up to K − 1 for indistinguishable ones.

    Args:
        data: an array or tensor (N, D), (N, H, W), (N, H, W, C) or (N, C, H, W); a table (pandas,
            polars), by rows; a ``Dataset`` or ``DataLoader`` of (sample, label); a Hugging Face data
            set, or a dictionary with its ``"train"`` part; or the name of a data set, the path of an
            image folder (CLASS/NAME.jpg, below train/ if there are parts), an ``.npz`` file or a CSV file
            of text. Images may be PIL, of any size. How they become numbers: :mod:`tstar.data.pixels`.
            Data are read once; what is kept is N·size²·3 bytes for images. Code of yours (a ``Dataset``
            with random transforms) runs in a process of its own, seeded by ``seed``.
        labels: one hashable value per sample; or the name of the label column; not for paths.
        samples: m, the most samples of a class whose neighbors are looked at.
        neighbors: k.
        seed: of the draw, which depends on it and on sample positions only.
        size: images are brought to size×size by area averaging; ``None`` leaves them as they are.
        embed: a function or ``nn.Module`` from a batch of samples, as they come, to vectors, which
            are compared in place of pixels (``size`` then plays no part).
        distance: ``"euclidean"`` or ``"cosine"``.
        repeats: independent draws; more than one gives the interval over draws, where they differ: a class of at most
            ``samples`` samples is taken whole in every draw.
        skip_unreadable: go on without unreadable files of a folder, which is an error otherwise.
        limit: the most samples to read, drawn by ``seed``; csg of a part differs somewhat from that of
            the whole. Data that can only be iterated over are read whole.
        root: the folder that names and paths are looked up in; ``$TSTAR_DATA``, else ``~/.cache/tstar``, by default.

    >>> import numpy as np
    >>> x = np.repeat(np.eye(3), 20, axis=0) + np.random.default_rng(0).normal(0, 0.05, (60, 3))
    >>> float(csg(x, np.repeat(["ant", "bee", "cat"], 20)))    # far apart
    0.0
    """
    samples, neighbors = (
        whole(name, value, least=1)
        for name, value in (("samples", samples), ("neighbors", neighbors))
    )
    repeats = whole("repeats", repeats, least=1, most=_MOST_REPEATS)
    seed = whole("seed", seed, least=0, most=2**64 - 1)
    size, limit = (
        None if value is None else whole(name, value, least=1)
        for name, value in (("size", size), ("limit", limit))
    )
    if distance not in DISTANCES:
        raise unknown("distance", distance, DISTANCES)
    if embed is not None and not callable(embed):
        raise TstarError(f"embed must be a function or a module, got {embed!r}.")
    matrix = read(
        data,
        labels,
        size=size,
        embed=embed,
        skip_unreadable=skip_unreadable,
        limit=limit,
        seed=seed,
        root=root,
    )
    _check(matrix, neighbors)
    return _measure(matrix, samples, neighbors, seed, distance, repeats)


def _measure(
    matrix: Matrix, samples: int, neighbors: int, seed: int, distance: str, repeats: int
) -> Csg:
    K = len(matrix.classes)
    drawn = [draw(matrix.codes, samples, seed, repeat) for repeat in range(repeats)]
    queries, inverse = np.unique(
        np.concatenate([np.concatenate(d) for d in drawn]), return_inverse=True
    )
    found = _neighbors(matrix, queries, neighbors, distance)
    volumes = log_volumes(matrix.values, queries, found, matrix.scale)
    codes = matrix.codes[found]
    values, start = [], 0
    for one in drawn:
        rows = inverse[start : start + sum(map(len, one))]
        start += len(rows)
        owners = np.repeat(np.arange(K), [len(d) for d in one])
        weights = sample_weights(volumes[rows], owners, K)
        S = expectation(codes[rows], owners, weights, K)
        W = similarity(S)
        eigenvalues = np.linalg.eigvalsh(laplacian(W)).astype(np.float64)
        values.append(float(cumulative_gradient(eigenvalues)))
        if len(values) == 1:
            first = S, W, eigenvalues
            arguments = codes[rows], owners, weights, K, seed
            floored = float(np.mean(volumes[rows] <= math.log(FLOOR)))
            effective = _effective_samples(weights, owners, K)
    differ = len(set(values)) > 1  # draws that take every sample do not
    interval = over_draws(np.array(values), K) if differ else bootstrap(values[0], *arguments)
    return presented(
        Csg(
            value=values[0],
            interval=interval,
            draws=tuple(values),
            expectation=first[0],
            similarity=first[1],
            spectrum=first[2],
            classes=matrix.classes,
            samples=tuple(len(d) for d in drawn[0]),
            indices=tuple(
                rows if matrix.positions is None else matrix.positions[rows] for rows in drawn[0]
            ),
            neighbors=neighbors,
            seed=seed,
            distance=distance,
            floored=floored,
            effective_samples=effective,
            num_samples=len(matrix.codes),
            notes=matrix.notes,
        )
    )


def _neighbors(
    matrix: Matrix, queries: NDArray[np.int64], k: int, distance: str
) -> NDArray[np.int64]:
    with progress("neighbors", len(queries)) as tick:
        if distance == "cosine":
            return nearest(_unit_length(matrix.values), queries, k, tick=tick)
        if matrix.on_device is not None:
            from tstar.difficulty.neighbors.device import nearest_on_device

            return nearest_on_device(matrix.on_device, queries, k, tick=tick)
        return nearest(matrix.values, queries, k, tick=tick)


def _unit_length(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Rows of length one: their Euclidean order is the order of cosine distances."""
    floats = values.astype(np.float64 if values.dtype == np.float64 else np.float32)
    lengths = np.sqrt(np.square(floats, dtype=np.float64).sum(axis=1))
    if not lengths.all():
        raise TstarError(
            f"distance='cosine' needs samples other than zero, but sample {int(lengths.argmin())} is "
            "all zeros; use distance='euclidean'."
        )
    unit: NDArray[np.generic] = (floats / lengths[:, None]).astype(floats.dtype)
    return unit


def _effective_samples(weights: NDArray[np.float64], owners: NDArray[np.int64], K: int) -> float:
    """The fewest samples that decide a row of S: min over classes of (Σw)²/Σw²."""
    total = np.bincount(owners, weights, K)
    return float((total**2 / np.bincount(owners, weights**2, K)).min())


def _check(matrix: Matrix, neighbors: int) -> None:
    N, K = len(matrix.codes), len(matrix.classes)
    if N == 0:
        raise TstarError("data must hold at least two samples, but they are empty.")
    if K < 2:
        raise TstarError(
            f"data must have at least two classes, got {K} ({matrix.classes[0]!r}); csg compares classes."
        )
    counts = np.bincount(matrix.codes)
    if counts.min() < 2:
        single = [matrix.classes[i] for i in np.flatnonzero(counts < 2)]
        raise TstarError(
            f"Every class must have at least two samples, but {len(single)} have one: "
            f"{', '.join(map(repr, single[:5]))}{', …' if len(single) > 5 else ''}; "
            "add samples or leave these classes out."
        )
    if neighbors >= N:
        raise TstarError(
            f"neighbors < {N} (the number of samples) must hold, got neighbors={neighbors}."
        )
