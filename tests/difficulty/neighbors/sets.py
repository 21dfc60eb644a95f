"""Matrices of every kind that a search may meet."""

import numpy as np

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
    "constant": np.full((200, 90), 7, np.uint8),
    "few rows": rng.integers(0, 256, (8, 3000), dtype=np.uint8),
    "float32 far from zero": (rng.normal(size=(300, 150)) + 1000).astype(np.float32),
    "float64": rng.normal(size=(300, 100)),
    "one dimension": rng.normal(size=(60, 1)),
    "huge": 1e90 * rng.normal(size=(200, 80)),
    "tiny": 1e-90 * rng.normal(size=(200, 80)),
    "one outlier": np.vstack([rng.normal(size=(200, 80)), 1e9 * rng.normal(size=(2, 80))]),
    "low rank": rng.normal(size=(300, 3)) @ rng.normal(size=(3, 120)),
}
