"""What is measured of the second atlas's conditions before any training."""

import torch

from research.atlas_measured import parameters
from research.conditions import draw
from tstar.lab.data import DataSet


def test_parameters_are_those_of_the_conditions_network():
    index = next(i for i in range(60) if draw(i).plain.model == "mlp-no-norm" and not draw(i).plain.trunk_features)  # fmt: skip
    spec = draw(index).plain
    x, y = torch.rand(20, 7), torch.arange(20) % 4
    data = DataSet("toy", "vector", x, y, x, y, tuple("abcd"))
    M, depth = spec.num_features, spec.depth
    hidden = 7 * M + M + (depth - 1) * (M * M + M)
    assert parameters(spec, data, "") == hidden + 4 * M + 4
