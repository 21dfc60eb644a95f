"""The divergence, and the frozen teacher."""

import pytest
import torch
from torch import nn

from tests.methods.networks import INPUTS, LABELS, K, net, random, usual
from tstar import TstarError, methods
from tstar.methods.distilling import divergence
from tstar.methods.logit_standardization import standardize


def test_standardize_and_divergence_pass_gradcheck():
    z, t = random(3, K, seed=1).requires_grad_(), random(3, K, seed=2)
    assert torch.autograd.gradcheck(standardize, (z,))
    taus = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z, u: divergence(z, t, u[0], u[1]), (z, taus))


def test_the_teacher_is_frozen_and_in_eval_mode_and_the_callers_is_not_touched():
    teacher = net(3).train()
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    recipe = methods.get("kd").prepare(net(), usual(teacher=teacher))
    recipe.loss(recipe.model(INPUTS), LABELS, INPUTS).backward()
    assert teacher.training
    assert all(p.grad is None and p.requires_grad for p in teacher.parameters())
    assert all(torch.equal(before[name], value) for name, value in teacher.state_dict().items())
    in_eval = methods.get("kd").prepare(net(), usual(teacher=net(3).eval()))
    a, b = (r.loss(r.model(INPUTS), LABELS, INPUTS).item() for r in (recipe, in_eval))
    assert a == b


@pytest.mark.parametrize("name", ["kd", "meta-kd", "ctkd", "logit-standardization"])
def test_distillation_without_a_teacher_or_with_another_ones_classes_is_refused(name):
    with pytest.raises(TstarError, match="needs a teacher"):
        methods.get(name).prepare(net(), usual(teacher=None))
    with pytest.raises(TstarError, match="6 classes, got 9"):
        methods.get(name).prepare(net(), usual(teacher=net(3, classes=9)))


def test_a_teacher_whose_classes_cannot_be_read_is_caught_at_its_first_output():
    class Strange(nn.Module):
        def forward(self, x):
            return x.new_zeros(len(x), 9)

    recipe = methods.get("kd").prepare(net(), usual(teacher=Strange()))
    with pytest.raises(TstarError, match="same classes"):
        recipe.loss(recipe.model(INPUTS), LABELS, INPUTS)
