"""The project's own networks: shapes, and that the head is found."""

import pytest
import torch

import tstar
from research.networks import dense, gru, linear


@pytest.mark.parametrize(
    ("make", "shape", "given"),
    [
        (linear, (20,), {}),
        (dense, (3, 16, 16), {"num_features": 32}),
        (dense, (1, 8, 8), {"num_features": 16}),
        (gru, (3, 16, 16), {"num_features": 24}),
        (gru, (12, 25), {"num_features": 24}),
    ],
)
def test_shapes_and_heads(make, shape, given):
    model = make(num_classes=5, in_channels=shape[0], **given)
    x = torch.randn(4, *shape)
    assert model(x).shape == (4, 5)
    head = tstar.find_head(model, x)
    assert (head.num_classes, head.num_features) == (5, given.get("num_features", shape[0]))
