"""The search on a device finds what the one on the processor finds."""

import numpy as np
import pytest
import torch

from tests.difficulty.neighbors.sets import SETS
from tstar.difficulty.neighbors import nearest
from tstar.difficulty.neighbors.device import nearest_on_device


@pytest.mark.parametrize("name", [name for name, data in SETS.items() if data.dtype == np.uint8])
def test_the_device_route_agrees(name):
    data = SETS[name]
    queries = np.arange(0, len(data), 5)
    np.testing.assert_array_equal(
        nearest_on_device(torch.from_numpy(data), queries, 4, block=9), nearest(data, queries, 4)
    )
