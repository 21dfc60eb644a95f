"""What several methods share."""

import pytest
import torch
from torch import nn

from tests.lab.methods.networks import facts
from tstar import TstarError
from tstar.lab.measuring import predict
from tstar.lab.methods.common import with_head
from tstar.lab.recipe import cross_entropy

SQUARES = "torch.nn.functional:mse_loss"


@pytest.mark.parametrize(("shape", "sizes"), [((5, 4), [5]), ((40, 3, 256, 256), [16, 16, 8])])
def test_large_samples_are_measured_in_smaller_batches(shape, sizes):
    seen = []
    net = nn.Flatten(1)
    net.register_forward_hook(lambda module, inputs, output: seen.append(len(output)))
    x = torch.zeros(1).expand(shape)
    assert torch.equal(predict(net, x), x.flatten(1))
    assert seen == sizes


def test_the_output_layer_of_a_copy_is_replaced():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 5))
    changed = with_head(model, facts(), lambda layer: nn.Sequential(layer, nn.Tanh())).model
    assert isinstance(changed[2], nn.Sequential)
    assert isinstance(model[2], nn.Linear)
    alone = with_head(nn.Linear(4, 5), facts(), lambda layer: nn.Sequential(layer)).model
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
