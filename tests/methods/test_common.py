"""What several methods share."""

import pytest
import torch
from torch import nn

from tests.methods.networks import facts
from tstar import TstarError
from tstar.methods.common import cross_entropy, measuring_batch, with_output_layer

SQUARES = "torch.nn.functional:mse_loss"


def test_large_samples_are_measured_in_smaller_batches():
    assert measuring_batch(torch.zeros(2, 3, 32, 32)) == 512
    assert measuring_batch(torch.zeros(2, 3, 64, 64)) == 128
    assert measuring_batch(torch.zeros(2, 3, 1024, 1024)) == 16
    assert measuring_batch(torch.zeros(0, 4)) == 512


def test_the_output_layer_of_a_copy_is_replaced():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 5))
    changed = with_output_layer(model, facts(), lambda layer: nn.Sequential(layer, nn.Tanh()))
    assert isinstance(changed[2], nn.Sequential)
    assert isinstance(model[2], nn.Linear)
    alone = with_output_layer(nn.Linear(4, 5), facts(), lambda layer: nn.Sequential(layer))
    assert isinstance(alone, nn.Sequential)


def test_a_loss_of_your_own_takes_the_place_of_cross_entropy():
    z = torch.randn(4, 2, requires_grad=True)
    y = torch.randn(4, 2)
    loss = cross_entropy(facts(loss=SQUARES))(z, y, z)
    assert loss.item() == pytest.approx(((z - y) ** 2).mean().item())
    with pytest.raises(TstarError, match="must return one number that depends on the logits"):
        cross_entropy(facts(loss=SQUARES))(z.detach(), y, z)
    with pytest.raises(TstarError, match="belongs to cross-entropy"):
        cross_entropy(facts(loss=SQUARES, label_smoothing=0.1))
