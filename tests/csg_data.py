"""Independent references for the tests of csg: brute force, and the public implementation."""

import numpy as np
from torch.utils.data import Dataset


def brute_neighbors(data, queries, k):
    """The k nearest by plain differences in wide types, the sample itself left out, ties by position."""
    real = data.dtype.itemsize > 1
    scale = 2.0 ** -np.frexp(np.abs(data).max())[1] if real else 1  # squares stay in range
    wide = (data * scale).astype(np.longdouble) if real else data.astype(np.int64)
    found = []
    for q in queries:
        squares = ((wide - wide[q]) ** 2).sum(axis=1)
        order = np.lexsort((np.arange(len(wide)), squares))
        found.append(order[order != q][:k])
    return np.array(found)


def oracle(data, codes, drawn, k):
    """csg of spectral-metric on samples that were drawn already. Returns (csg, S, W, spectrum)."""
    from spectral_metric.estimator import CumulativeGradientEstimator

    estimator = CumulativeGradientEstimator(M_sample=250, k_nearest=k)
    estimator.n_class = len(drawn)
    estimator.class_indices = dict(enumerate(drawn))
    estimator.compute(data, codes, {c: data[rows] for c, rows in enumerate(drawn)})
    return float(estimator.csg[0]), estimator.S, estimator.W, estimator.evals


def blobs(n, classes, dimensions, spread, seed=0):
    """Gaussian clusters: (n, dimensions) float64 and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes)
    centers = rng.normal(size=(classes, dimensions))
    return centers[labels] + spread * rng.normal(size=(n, dimensions)), labels


def pictures(n, classes, side, seed=0):
    """8-bit RGB images with smooth class patterns and noise: (n, side, side, 3) and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % classes)
    coarse = rng.normal(size=(classes, 4, 4, 3))
    smooth = coarse.repeat(side // 4, axis=1).repeat(side // 4, axis=2)
    images = 128 + 5 * smooth[labels] + 40 * rng.normal(size=(n, 1, 1, 1))
    images = images + 30 * rng.normal(size=(n, side, side, 3))
    return np.clip(np.rint(images), 0, 255).astype(np.uint8), labels


def row_stochastic(K, seed=0):
    S = np.random.default_rng(seed).random((K, K)) ** 4
    return S / S.sum(axis=1, keepdims=True)


class Pairs(Dataset):
    def __init__(self, samples, labels):
        self.samples, self.labels = samples, labels

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i], self.labels[i]


rng = np.random.default_rng(0)
_MOTIF = rng.normal(128, 40, (30, 3, 16, 16)).repeat(2, axis=2).repeat(2, axis=3)
_MOTIF = np.clip(_MOTIF.repeat(10, axis=0) + rng.normal(0, 9, (300, 3, 32, 32)), 0, 255)
SETS = {
    "pictures": _MOTIF.astype(np.uint8).reshape(300, -1),
    "pictures, channels last": _MOTIF.astype(np.uint8).transpose(0, 2, 3, 1).reshape(300, -1),
    "noise": rng.integers(0, 256, (400, 300), dtype=np.uint8),
    "black and white": 255 * rng.integers(0, 2, (300, 700), dtype=np.uint8),
    "many ties": rng.integers(0, 2, (300, 80), dtype=np.uint8),
    "duplicates": np.repeat(rng.integers(0, 256, (60, 200), dtype=np.uint8), 5, axis=0),
    "constant columns": np.eye(200, 900, dtype=np.int8) * np.int8(-3),
    "constant": np.full((200, 90), 7, np.uint8),
    "few rows": rng.integers(0, 256, (8, 3000), dtype=np.uint8),
    "float32 far from zero": (rng.normal(size=(300, 150)) + 1000).astype(np.float32),
    "float64": rng.normal(size=(300, 100)),
    "one dimension": rng.normal(size=(60, 1)),
    "huge": 1e90 * rng.normal(size=(200, 80)),
    "tiny": 1e-90 * rng.normal(size=(200, 80)),
    "squares below float64": 1e-170 * rng.normal(size=(200, 80)),
    "one outlier": np.vstack([rng.normal(size=(200, 80)), 1e9 * rng.normal(size=(2, 80))]),
    "low rank": rng.normal(size=(300, 3)) @ rng.normal(size=(3, 120)),
}
