"""scikit-learn's handwritten digits: 1,797 real images of 8×8 that need no download."""

from __future__ import annotations

import numpy as np
import torch

from tstar.data.dataset import DataSet
from tstar.data.resize import area_resize
from tstar.data.splits import test_rows
from tstar.errors import require


def read_digits(size: int | None) -> DataSet:
    """uint8, 1×8×8 (gray values 0…16 brought to 0…255); a seeded, stratified fifth is the test part."""
    bunch = require("sklearn.datasets", "demo").load_digits()
    gray = np.round(bunch.images * (255 / 16)).astype(np.uint8)
    x = torch.from_numpy(gray)[:, None]
    if size is not None:
        x = area_resize(x, size)
    y = torch.from_numpy(bunch.target.astype(np.int64))
    train, test = test_rows(y)
    return DataSet(
        "digits", "image", x[train], y[train], x[test], y[test], tuple(map(str, range(10)))
    )
