"""Distillation: the losses against NumPy, the learned temperatures against finite differences."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.lab.methods import networks as nets
from tstar import TstarError
from tstar.lab import methods
from tstar.lab.methods import distillation


def test_standardize_and_divergence_pass_gradcheck():
    z, t = nets.random(3, nets.K, seed=1).requires_grad_(), nets.random(3, nets.K, seed=2)
    assert torch.autograd.gradcheck(distillation.standardize, (z,))
    taus = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda z, u: distillation.divergence(z, t, u[0], u[1]), (z, taus)
    )


def test_the_teacher_is_frozen_and_in_eval_mode_and_the_callers_is_not_touched():
    teacher = nets.net(3).train()
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    recipe = methods.get("kd").prepare(nets.net(), nets.usual(teacher=teacher))
    recipe.loss(recipe.model(nets.INPUTS), nets.LABELS, nets.INPUTS).backward()
    assert teacher.training
    assert all(p.grad is None and p.requires_grad for p in teacher.parameters())
    assert all(torch.equal(before[name], value) for name, value in teacher.state_dict().items())
    in_eval = methods.get("kd").prepare(nets.net(), nets.usual(teacher=nets.net(3).eval()))
    a, b = (
        r.loss(r.model(nets.INPUTS), nets.LABELS, nets.INPUTS).item() for r in (recipe, in_eval)
    )
    assert a == b


@pytest.mark.parametrize("name", ["kd", "meta-kd", "ctkd", "logit-standardization"])
def test_distillation_without_a_teacher_or_with_another_ones_classes_is_refused(name):
    with pytest.raises(TstarError, match="needs a teacher"):
        methods.get(name).prepare(nets.net(), nets.usual(teacher=None))
    recipe = methods.get(name).prepare(nets.net(), nets.usual(teacher=nets.net(3, classes=9)))
    with pytest.raises(TstarError, match="same classes"):
        recipe.loss(recipe.model(nets.INPUTS), nets.LABELS, nets.INPUTS)


def test_kd():
    value, z, t = nets.loss_of("kd")
    assert value == pytest.approx(
        0.1 * nets.ce(z, nets.Y) + 0.9 * 16 * nets.kl(t / 4, z / 4), rel=1e-12
    )


def test_kd_at_infinite_temperature_has_the_gradient_of_logit_matching():
    """τ²·∂KL/∂z_s → (z_s − z_t)/K for centered logits: that of ‖z_s − z_t‖²/(2K)."""
    z_t = nets.random(4, nets.CLASSES, seed=1)
    z_t = z_t - z_t.mean(1, keepdim=True)
    z_s = nets.random(4, nets.CLASSES, seed=2)
    z_s = (z_s - z_s.mean(1, keepdim=True)).requires_grad_()
    (soft,) = torch.autograd.grad(distillation.divergence(z_s, z_t, 1e4), z_s)
    match = ((z_s - z_t) ** 2).sum(1).mean() / (2 * nets.CLASSES)
    (hard,) = torch.autograd.grad(match, z_s)
    assert torch.allclose(soft, hard, rtol=1e-3, atol=1e-7)
    (at_two,) = torch.autograd.grad(distillation.divergence(z_s, z_t, 2.0), z_s)
    assert not torch.allclose(at_two, hard, rtol=1e-3, atol=1e-7)


def z_score(z: np.ndarray) -> np.ndarray:
    return (z - z.mean(1, keepdims=True)) / (1e-7 + z.std(1, ddof=1, keepdims=True))


def test_logit_standardization():
    value, z, t = nets.loss_of("logit-standardization")
    soft = nets.kl(z_score(t) / 2, z_score(z) / 2)
    assert value == pytest.approx(0.1 * nets.ce(z, nets.Y) + 9 * 4 * soft, rel=1e-12)


def test_ctkd():
    value, z, t = nets.loss_of("ctkd")
    tau = 1 + 20 / (1 + math.exp(-1))
    assert value == pytest.approx(
        0.1 * nets.ce(z, nets.Y) + 0.9 * tau**2 * nets.kl(t / tau, z / tau), rel=1e-6
    )


@pytest.mark.parametrize(
    ("epoch", "value"),
    [(1, 0.5 * (1 + math.cos(0.1 * math.pi)) - 1), (5, -0.5), (10, -1), (20, -1)],
)
def test_ctkds_curriculum(epoch, value):
    assert distillation.reversal(epoch) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("epoch", [1, 5, 10, 20])
def test_ctkds_temperature_climbs_the_loss_that_the_student_descends(epoch):
    recipe = methods.get("ctkd").prepare(nets.net(), nets.usual())
    (tau,) = recipe.extra
    assert tau.factor == pytest.approx(0.5 * (1 + math.cos(math.pi / 10)) - 1)  # epoch 1 until told
    assert recipe.on_epoch(epoch, 20) == 1.0  # the learning rate is left alone
    assert isinstance(tau, distillation.AdversarialTemperature)
    assert tau().item() == pytest.approx(1 + 20 / (1 + math.exp(-1)), rel=1e-6)
    loss = recipe.loss(recipe.model(nets.INPUTS), nets.LABELS, nets.INPUTS)
    loss.backward()

    def at(u: float) -> float:
        with torch.no_grad():
            tau.u.fill_(u)
            return recipe.loss(recipe.model(nets.INPUTS), nets.LABELS, nets.INPUTS).item()

    slope = (at(1 + 1e-4) - at(1 - 1e-4)) / 2e-4
    lam = 0.5 * (1 + math.cos(math.pi * min(epoch, 10) / 10)) - 1
    assert tau.u.grad.item() == pytest.approx(lam * slope, rel=1e-4)
    # One SGD step on u at this gradient raises the loss.
    assert at(1 - 0.01 * tau.u.grad.item()) > at(1.0)


def test_meta_kd():
    value, z, t = nets.loss_of("meta-kd", tau=3.0)
    assert value == pytest.approx(
        0.1 * nets.ce(z, nets.Y) + 0.9 * 9 * nets.kl(t / 3, z / 3), rel=1e-12
    )
    start, *_ = nets.loss_of("meta-kd")
    assert start == pytest.approx(
        0.1 * nets.ce(z, nets.Y) + 0.9 * 16 * nets.kl(t / 4, z / 4), rel=1e-12
    )


def test_meta_kds_hypergradient_equals_a_finite_difference():
    """∇_τ L_val(θ − η∇_θ L_train(θ, τ)) against central differences of two real SGD steps."""
    teacher_logits = nets.net(3).eval()(nets.INPUTS).detach()
    validation = (nets.random(9, 4, seed=5), torch.arange(9) % nets.CLASSES)

    def train_loss(tau_s, tau_t):
        def loss(logits, targets, inputs):
            soft = distillation.divergence(logits, teacher_logits, tau_s, tau_t)
            return 0.1 * F.cross_entropy(logits, targets) + 0.9 * soft

        return loss

    def after_a_real_step(tau_s: float, tau_t: float) -> float:
        model = nets.net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        train_loss(tau_s, tau_t)(model(nets.INPUTS), nets.LABELS, nets.INPUTS).backward()
        optimizer.step()
        return F.cross_entropy(model(validation[0]), validation[1]).item()

    taus = torch.tensor([3.0, 5.0], dtype=torch.float64, requires_grad=True)
    outer = distillation.lookahead_loss(
        nets.net(), train_loss(taus[0], taus[1]), (nets.INPUTS, nets.LABELS), validation, lr=0.3
    )
    assert outer.item() == pytest.approx(after_a_real_step(3.0, 5.0), rel=1e-12)
    (gradient,) = torch.autograd.grad(outer, taus)
    e = 1e-4
    expected = [
        (after_a_real_step(3 + e, 5) - after_a_real_step(3 - e, 5)) / (2 * e),
        (after_a_real_step(3, 5 + e) - after_a_real_step(3, 5 - e)) / (2 * e),
    ]
    assert gradient.tolist() == pytest.approx(expected, rel=1e-5)
    assert all(abs(value) > 1e-6 for value in expected)


def test_meta_kd_moves_tau_and_leaves_the_model_alone():
    recipe = methods.get("meta-kd").prepare(nets.net(), nets.usual())
    before = {name: value.clone() for name, value in recipe.model.state_dict().items()}
    state = torch.get_rng_state()
    recipe.on_batch(recipe.model, nets.INPUTS, nets.LABELS, 0.3)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[n], value) for n, value in recipe.model.state_dict().items())
    assert all(p.grad is None for p in recipe.model.parameters())
    assert 4.0 not in recipe.report().values()


def test_meta_kd_takes_the_validation_data_in_turn_with_its_own_step_size():
    """τ ← τ − 10·∂L_val/∂τ on rows 0–3 of the validation part, then on rows 4–7."""
    x, y = nets.INPUTS[:4], nets.LABELS[:4]
    held_out = nets.usual().validation
    recipe = methods.get("meta-kd").prepare(nets.net(), nets.usual())
    teacher_logits = nets.net(3).eval()(x).detach()
    tau = [4.0, 4.0]
    for rows in (slice(0, 4), slice(4, 8)):
        taus = torch.tensor(tau, dtype=torch.float64, requires_grad=True)

        def loss(logits, targets, inputs, taus=taus):
            soft = distillation.divergence(logits, teacher_logits, taus[0], taus[1])
            return 0.1 * F.cross_entropy(logits, targets) + 0.9 * soft

        part = (held_out[0][rows], held_out[1][rows])
        outer = distillation.lookahead_loss(nets.net(), loss, (x, y), part, lr=0.01)
        (gradient,) = torch.autograd.grad(outer, taus)
        tau = (taus - 10.0 * gradient).tolist()
        recipe.on_batch(recipe.model, x, y, 0.01)
        assert [*recipe.report().values()] == pytest.approx(tau, rel=1e-5)
    assert all(1 < value < 20 and abs(value - 4) > 1e-3 for value in tau)


def test_meta_kds_temperatures_stay_in_their_bounds():
    recipe = methods.get("meta-kd", tau_lr=1e6).prepare(nets.net(), nets.usual())
    for _ in range(3):
        recipe.on_batch(recipe.model, nets.INPUTS, nets.LABELS, 0.3)
        assert set(recipe.report().values()) <= {1.0, 20.0}


def test_meta_kd_without_validation_data_is_refused():
    with pytest.raises(TstarError, match="validation data"):
        methods.get("meta-kd").prepare(nets.net(), nets.usual(validation=None))
    with pytest.raises(TstarError, match="validation data"):
        methods.get("meta-kd").prepare(
            nets.net(), nets.usual(validation=(nets.INPUTS[:0], nets.LABELS[:0]))
        )
