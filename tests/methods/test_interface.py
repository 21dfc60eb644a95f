"""What holds for every method, whatever it does."""

import pytest
import torch
from torch import nn

from tests.methods.networks import (
    ALL,
    CLASSES,
    INPUTS,
    LABELS,
    WIDTH,
    M,
    Net,
    X,
    Y,
    facts,
    net,
    random,
    usual,
)
from tstar import methods


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("heated-up",)])
def test_gradients_of_the_loss_are_those_of_finite_differences(name):
    recipe = methods.get(name).prepare(Net(), facts())
    z = recipe.model(X).detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: recipe.loss(z, Y, X), (z,))


@pytest.mark.parametrize(
    "name", ["insert-ln", "relaxed-softmax", "adacos-fixed", "learned-temperature"]
)
def test_gradients_through_the_changed_heads(name):
    head = methods.get(name).prepare(Net(), facts()).model.head.double()
    h = random(3, M, seed=4).requires_grad_()
    assert torch.autograd.gradcheck(head, (h,))


@pytest.mark.parametrize("name", ALL)
def test_prepare_leaves_the_given_model_and_the_generator_alone(name):
    model = net()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    modules, known = [type(m) for m in model.modules()], usual()
    state = torch.get_rng_state()
    recipe = methods.get(name).prepare(model, known)
    assert torch.equal(state, torch.get_rng_state())
    optimizer = torch.optim.SGD(recipe.model.parameters(), 0.5)
    recipe.loss(recipe.model(INPUTS), LABELS, INPUTS).backward()
    optimizer.step()
    assert [type(m) for m in model.modules()] == modules
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize("name", ALL)
def test_every_method_takes_a_convolution_as_output_layer(name):
    def conv(classes: int = CLASSES) -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, WIDTH, 3), nn.ReLU(), nn.Conv2d(WIDTH, classes, 1), _Pool()
        )

    x = torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    recipe = methods.get(name).prepare(conv(), usual(teacher=conv(), head="2"))
    logits = recipe.model(x)
    assert logits.shape == (5, CLASSES)
    assert torch.isfinite(recipe.loss(logits, torch.arange(5), x))


class _Pool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))
