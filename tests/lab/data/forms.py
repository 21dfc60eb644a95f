"""Labeled samples in forms that users have them in."""

import numpy as np
from torch.utils.data import Dataset, IterableDataset

from tstar import csg
from tstar.lab.data import open_data

RNG = np.random.default_rng(0)
Y = np.arange(120) % 3
X = RNG.normal(size=(120, 6)).astype(np.float32) + Y[:, None]
EXPECTED = csg(X, Y, samples=20).value


class Pairs(Dataset):
    """A class of the user's: nobody knows what it draws on."""

    def __init__(self, x=X, y=Y, noise=None):
        self.x, self.y, self.noise = x, y, noise

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i] + (0 if self.noise is None else self.noise()), self.y[i]


class Stream(IterableDataset):
    def __init__(self, x=X, y=Y):
        self.x, self.y = x, y

    def __iter__(self):
        return iter(zip(self.x, self.y, strict=True))


def measured(data, labels=None, root=None, **options):
    """csg of anything that the lab opens."""
    return csg(open_data(data, labels, root=root), **options)
