"""Distillation: the losses against NumPy, the learned temperatures against finite differences."""

import math

import pytest
import torch
import torch.nn.functional as F

from tests.lab.methods import networks as nets
from tests.lab.methods.networks import TEACHER, Z_T, Net, X, Y, Z, ce, facts, kl, loss, prepared
from tstar import TstarError
from tstar.lab import methods
from tstar.lab.methods import distillation

TAU = 1 + 20 / (1 + math.exp(-1))  # CTKD's at the start


def z_score(z):
    return (z - z.mean(1, keepdims=True)) / (1e-7 + z.std(1, ddof=1, keepdims=True))


@pytest.mark.parametrize(
    ("name", "options", "soft"),
    [
        ("kd", {}, 0.9 * 16 * kl(Z_T / 4, Z / 4)),
        ("kd", {"tau": 2.0}, 0.9 * 4 * kl(Z_T / 2, Z / 2)),
        ("logit-standardization", {}, 9 * 4 * kl(z_score(Z_T) / 2, z_score(Z) / 2)),
        ("ctkd", {}, 0.9 * TAU**2 * kl(Z_T / TAU, Z / TAU)),
        ("meta-kd", {}, 0.9 * 16 * kl(Z_T / 4, Z / 4)),
        ("meta-kd", {"tau": 3.0}, 0.9 * 9 * kl(Z_T / 3, Z / 3)),
    ],
)
def test_losses(name, options, soft):
    assert loss(prepared(name, **options)).item() == pytest.approx(0.1 * ce(Z) + soft, rel=1e-6)


def test_standardize_and_divergence_pass_gradcheck():
    z, t = nets.random(3, nets.K, seed=1).requires_grad_(), nets.random(3, nets.K, seed=2)
    assert torch.autograd.gradcheck(distillation.standardize, (z,))
    taus = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda z, u: distillation.divergence(z, t, u[0], u[1]), (z, taus)
    )


def test_the_teacher_is_frozen_and_in_eval_mode_and_the_callers_is_not_touched():
    teacher = Net(seed=3).train()
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    value = loss(methods.get("kd").prepare(Net(), facts(teacher=teacher)))
    value.backward()
    assert teacher.training
    assert all(p.grad is None and p.requires_grad for p in teacher.parameters())
    assert all(torch.equal(before[name], value) for name, value in teacher.state_dict().items())
    assert value.item() == loss(prepared("kd")).item()  # of the same in eval mode


@pytest.mark.parametrize("name", ["kd", "meta-kd", "ctkd", "logit-standardization"])
def test_distillation_without_a_teacher_or_with_another_ones_classes_is_refused(name):
    with pytest.raises(TstarError, match="needs a teacher"):
        methods.get(name).prepare(Net(), facts(teacher=None))
    recipe = methods.get(name).prepare(Net(), facts(teacher=Net(9, seed=3)))
    with pytest.raises(TstarError, match="same classes"):
        loss(recipe)


def test_kd_at_infinite_temperature_has_the_gradient_of_logit_matching():
    """τ²·∂KL/∂z_s → (z_s − z_t)/K for centered logits: that of ‖z_s − z_t‖²/(2K)."""
    z_s, z_t = (z - z.mean(1, keepdim=True) for z in (nets.random(4, 5, seed=s) for s in (2, 1)))
    z_s.requires_grad_()
    match = ((z_s - z_t) ** 2).sum(1).mean() / (2 * 5)
    (hard,) = torch.autograd.grad(match, z_s)
    for tau, close in ((1e4, True), (2.0, False)):
        (soft,) = torch.autograd.grad(distillation.divergence(z_s, z_t, tau), z_s)
        assert torch.allclose(soft, hard, rtol=1e-3, atol=1e-7) is close


@pytest.mark.parametrize("epoch", [1, 5, 10, 20])
def test_ctkds_temperature_climbs_the_loss_that_the_student_descends(epoch):
    recipe = prepared("ctkd")
    (tau,) = recipe.extra
    assert recipe.on_epoch(epoch, 20) == 1.0  # the learning rate is left alone
    assert recipe.report() == {"tau": pytest.approx(TAU, rel=1e-6)}
    loss(recipe).backward()

    def at(u: float) -> float:
        with torch.no_grad():
            tau.u.fill_(u)
            return loss(recipe).item()

    slope = (at(1 + 1e-4) - at(1 - 1e-4)) / 2e-4
    factor = 0.5 * (1 + math.cos(math.pi * min(epoch, 10) / 10)) - 1
    assert tau.u.grad.item() == pytest.approx(factor * slope, rel=1e-4)
    # One SGD step on u at this gradient raises the loss.
    assert at(1 - 0.01 * tau.u.grad.item()) > at(1.0)


def train_loss(tau_s, tau_t):
    """Meta KD's, from its definition."""

    def value(logits, targets, inputs):
        soft = distillation.divergence(logits, TEACHER(inputs).detach(), tau_s, tau_t)
        return 0.1 * F.cross_entropy(logits, targets) + 0.9 * soft

    return value


def test_meta_kds_hypergradient_equals_a_finite_difference():
    """∇_τ L_val(θ − η∇_θ L_train(θ, τ)) against central differences of two real SGD steps."""
    held_out = facts().validation

    def after_a_real_step(tau_s: float, tau_t: float) -> float:
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        train_loss(tau_s, tau_t)(model(X), Y, X).backward()
        optimizer.step()
        return F.cross_entropy(model(held_out[0]), held_out[1]).item()

    taus = torch.tensor([3.0, 5.0], dtype=torch.float64, requires_grad=True)
    outer = distillation.lookahead_loss(Net(), train_loss(*taus), (X, Y), held_out, lr=0.3)
    assert outer.item() == pytest.approx(after_a_real_step(3.0, 5.0), rel=1e-12)
    (gradient,) = torch.autograd.grad(outer, taus)
    e = 1e-4
    expected = [
        (after_a_real_step(3 + e, 5) - after_a_real_step(3 - e, 5)) / (2 * e),
        (after_a_real_step(3, 5 + e) - after_a_real_step(3, 5 - e)) / (2 * e),
    ]
    assert gradient.tolist() == pytest.approx(expected, rel=1e-5)
    assert all(abs(value) > 1e-6 for value in expected)


def test_meta_kd_moves_tau_and_leaves_the_model_and_the_generator_alone():
    recipe = prepared("meta-kd")
    before = {name: value.clone() for name, value in recipe.model.state_dict().items()}
    state = torch.get_rng_state()
    recipe.on_batch(recipe.model, X, Y, 0.3)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[n], value) for n, value in recipe.model.state_dict().items())
    assert all(p.grad is None for p in recipe.model.parameters())
    assert 4.0 not in recipe.report().values()


def test_meta_kd_takes_the_validation_data_in_turn_with_its_own_step_size():
    """τ ← τ − 10·∂L_val/∂τ on rows 0–3 of the validation part, then on rows 4–7."""
    batch, held_out, recipe, tau = (
        (X[:4], Y[:4]),
        facts().validation,
        prepared("meta-kd"),
        [4.0] * 2,
    )
    for rows in (slice(0, 4), slice(4, 8)):
        taus = torch.tensor(tau, dtype=torch.float64, requires_grad=True)
        part = (held_out[0][rows], held_out[1][rows])
        outer = distillation.lookahead_loss(Net(), train_loss(*taus), batch, part, lr=0.01)
        tau = (taus - 10.0 * torch.autograd.grad(outer, taus)[0]).tolist()
        recipe.on_batch(recipe.model, *batch, 0.01)
        assert [*recipe.report().values()] == pytest.approx(tau, rel=1e-5)
    assert all(1 < value < 20 and abs(value - 4) > 1e-3 for value in tau)


def test_meta_kds_temperatures_stay_in_their_bounds():
    recipe = prepared("meta-kd", tau_lr=1e6)
    for _ in range(3):
        recipe.on_batch(recipe.model, X, Y, 0.3)
        assert set(recipe.report().values()) <= {1.0, 20.0}


@pytest.mark.parametrize("validation", [None, (X[:0], Y[:0])])
def test_meta_kd_without_validation_data_is_refused(validation):
    with pytest.raises(TstarError, match="validation data"):
        methods.get("meta-kd").prepare(Net(), facts(validation=validation))
