"""The average of the weights against a few lines of arithmetic."""

import torch
from torch import nn

from tstar.training.average import Average


def test_it_is_the_recursion_with_a_growing_decay():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    average = Average(model, 0.5)
    expected = model[0].weight.detach().clone()
    for step in range(20):
        with torch.no_grad():
            model[0].weight.add_(1.0)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model[0].weight.detach()
        average.update(step)
    assert torch.allclose(average.values["0.weight"], expected)
    assert "1.running_mean" in average.values
    assert "1.num_batches_tracked" not in average.values


def test_inside_the_model_has_the_average_and_afterwards_its_own_weights():
    model = nn.Linear(2, 2)
    before = model.weight.detach().clone()
    average = Average(model, 0.9)
    average.values["weight"].zero_()
    with average.applied():
        assert not model.weight.any()
    assert torch.equal(model.weight, before)
    average.apply()
    assert not model.weight.any()
