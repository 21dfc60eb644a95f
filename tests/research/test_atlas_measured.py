"""What is measured of the second atlas's conditions before any training."""

import pandas as pd
import pytest
import torch

from research.atlas_measured import FILE, parameters
from research.conditions import LONG, PROBES, TUNING, draw
from tstar.data import DataSet
from tstar.formula.cautions import LARGEST


def test_the_largest_network_is_the_one_that_the_caution_names():
    sizes = pd.read_csv(FILE).set_index("condition")["parameters"]
    scratch = sizes[[c for c in sizes.index if c < PROBES or LONG <= c < TUNING]]
    assert pytest.approx(scratch.max(), rel=0.01) == LARGEST


def test_parameters_are_those_of_the_conditions_network():
    index = next(i for i in range(60) if draw(i).plain.model == "mlp-no-norm" and not draw(i).plain.trunk_features)  # fmt: skip
    spec = draw(index).plain
    x, y = torch.rand(20, 7), torch.arange(20) % 4
    data = DataSet("toy", "vector", x, y, x, y, tuple("abcd"))
    M, depth = spec.num_features, spec.depth
    hidden = 7 * M + M + (depth - 1) * (M * M + M)
    assert parameters(spec, data, "") == hidden + 4 * M + 4
