"""The gradient into the backbone can be scaled; nothing else changes."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tstar
from tstar import TstarError
from tstar.lab.methods.backbone import matched_backbone, scale_backbone
from tstar.output_layer import find_head

C, T = 0.4, 6.0
Y = torch.arange(16) % 4


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)).double()


def pair(norm="batch", c=C):
    """The same tempered network, as it is and with its backbone heard c·T times as loudly."""
    as_is, heard = (tstar.temper(network(), T, norm=norm) for _ in range(2))
    scale_backbone(heard[2], c)
    return as_is, heard


def batch():
    return torch.randn(16, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def gradients(model, loss=lambda z: F.cross_entropy(z, Y)):
    model.zero_grad()
    loss(model(batch())).backward()
    return {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("norm", ["batch", None])
def test_backbone_gradients_are_times_c_t_and_the_heads_are_not(norm):
    as_is, heard = (gradients(model) for model in pair(norm))
    for name, gradient in as_is.items():
        factor = C * T if name.startswith("0.") else 1.0
        torch.testing.assert_close(heard[name], factor * gradient)


def test_logits_and_fold_are_untouched_to_the_last_bit():
    as_is, heard = pair()
    assert torch.equal(as_is(batch()), heard(batch()))
    assert torch.equal(as_is.eval()(batch()), heard.eval()(batch()))
    folded = [tstar.fold(model).state_dict() for model in (as_is, heard)]
    assert folded[0].keys() == network().state_dict().keys()
    assert all(torch.equal(folded[0][key], folded[1][key]) for key in folded[0])


def test_it_follows_a_schedule():
    _, heard = pair()
    before = gradients(heard, lambda z: z.square().sum())
    heard[2].set_temperature(2 * T)
    after = gradients(heard, lambda z: (2 * z).square().sum())
    # The logits are halved and doubled again; the backbone hears the loss twice as loudly.
    torch.testing.assert_close(after["0.weight"], 2 * before["0.weight"])
    torch.testing.assert_close(after["2.layer.weight"], before["2.layer.weight"])


def test_without_a_norm_it_is_the_plain_model_at_other_rates():
    """With SGD and c = 1: init/T and lr/T² for the head, lr·T for the backbone."""
    _, heard = pair(None, c=1.0)
    plain = network()
    with torch.no_grad():
        for parameter in plain[2].parameters():
            parameter /= T
    groups = [
        {"params": plain[0].parameters(), "lr": 0.02 * T},
        {"params": plain[2].parameters(), "lr": 0.02 / T**2},
    ]
    optimizers = torch.optim.SGD(heard.parameters(), lr=0.02), torch.optim.SGD(groups)
    for _ in range(50):
        for model, optimizer in zip((heard, plain), optimizers, strict=True):
            optimizer.zero_grad()
            F.cross_entropy(model(batch()), Y).backward()
            optimizer.step()
    torch.testing.assert_close(heard(batch()), plain(batch()), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sigma", [0.05, 0.2, 3.0])
def test_a_matched_backbone_undoes_the_one_over_sigma_of_a_batch_norm(sigma):
    """Exactly so for features without covariance with the gradient; here within one batch."""
    torch.manual_seed(0)
    body = nn.Linear(200, 64, bias=False).double()
    nn.init.orthogonal_(body.weight)
    model = nn.Sequential(body, nn.Linear(64, 10, bias=False).double())
    x = sigma * torch.randn(4096, 200, dtype=torch.float64)
    found = matched_backbone(model, find_head(model), x, "batch")
    assert found == pytest.approx(sigma, rel=0.03)


def test_what_cannot_be_matched():
    model = network()
    head = find_head(model)
    assert matched_backbone(model, head, batch(), None) == 1.0
    with pytest.raises(TstarError, match="finite and above zero"):
        matched_backbone(model, head, batch() * float("nan"), "batch")
    model[0].requires_grad_(False)
    assert matched_backbone(model, head, batch(), "batch") == 1.0
