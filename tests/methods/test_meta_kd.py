"""Meta KD: the hypergradient, its steps and bounds."""

import pytest
import torch
import torch.nn.functional as F

from tests.methods.networks import CLASSES, INPUTS, LABELS, Y, ce, kl, loss_of, net, random, usual
from tstar import TstarError, methods
from tstar.methods.distilling import divergence
from tstar.methods.meta_kd import lookahead_loss


def test_meta_kd():
    value, z, t = loss_of("meta-kd", tau=3.0)
    assert value == pytest.approx(0.1 * ce(z, Y) + 0.9 * 9 * kl(t / 3, z / 3), rel=1e-12)
    start, *_ = loss_of("meta-kd")
    assert start == pytest.approx(0.1 * ce(z, Y) + 0.9 * 16 * kl(t / 4, z / 4), rel=1e-12)


def test_meta_kds_hypergradient_equals_a_finite_difference():
    """∇_τ L_val(θ − η∇_θ L_train(θ, τ)) against central differences of two real SGD steps."""
    teacher_logits = net(3).eval()(INPUTS).detach()
    validation = (random(9, 4, seed=5), torch.arange(9) % CLASSES)

    def train_loss(tau_s, tau_t):
        def loss(logits, targets, inputs):
            soft = divergence(logits, teacher_logits, tau_s, tau_t)
            return 0.1 * F.cross_entropy(logits, targets) + 0.9 * soft

        return loss

    def after_a_real_step(tau_s: float, tau_t: float) -> float:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        train_loss(tau_s, tau_t)(model(INPUTS), LABELS, INPUTS).backward()
        optimizer.step()
        return F.cross_entropy(model(validation[0]), validation[1]).item()

    taus = torch.tensor([3.0, 5.0], dtype=torch.float64, requires_grad=True)
    outer = lookahead_loss(
        net(), train_loss(taus[0], taus[1]), (INPUTS, LABELS), validation, lr=0.3
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


def test_meta_kd_moves_tau_down_the_validation_loss_and_leaves_the_model_alone():
    recipe = methods.get("meta-kd").prepare(net(), usual())
    before = {name: value.clone() for name, value in recipe.model.state_dict().items()}
    state = torch.get_rng_state()
    recipe.on_batch(recipe.model, INPUTS, LABELS, 0.3)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[n], value) for n, value in recipe.model.state_dict().items())
    assert all(p.grad is None for p in recipe.model.parameters())
    moved = recipe.report()
    assert moved["tau_student"] != 4.0
    assert moved["tau_teacher"] != 4.0

    def val_loss(tau_s: float, tau_t: float) -> float:
        teacher_logits = net(3).eval()(INPUTS).detach()

        def loss(logits, targets, inputs):
            soft = divergence(logits, teacher_logits, tau_s, tau_t)
            return 0.1 * F.cross_entropy(logits, targets) + 0.9 * soft

        validation = (random(9, 4, seed=5), torch.arange(9) % CLASSES)
        return lookahead_loss(net(), loss, (INPUTS, LABELS), validation, lr=0.3).item()

    assert val_loss(moved["tau_student"], moved["tau_teacher"]) < val_loss(4.0, 4.0)


def test_meta_kd_takes_the_validation_data_in_turn_with_its_own_step_size():
    """τ ← τ − 10·∂L_val/∂τ on rows 0–3 of the validation part, then on rows 4–7."""
    x, y = INPUTS[:4], LABELS[:4]
    held_out = usual().validation
    recipe = methods.get("meta-kd").prepare(net(), usual())
    teacher_logits = net(3).eval()(x).detach()
    tau = [4.0, 4.0]
    for rows in (slice(0, 4), slice(4, 8)):
        taus = torch.tensor(tau, dtype=torch.float64, requires_grad=True)

        def loss(logits, targets, inputs, taus=taus):
            soft = divergence(logits, teacher_logits, taus[0], taus[1])
            return 0.1 * F.cross_entropy(logits, targets) + 0.9 * soft

        part = (held_out[0][rows], held_out[1][rows])
        outer = lookahead_loss(net(), loss, (x, y), part, lr=0.01)
        (gradient,) = torch.autograd.grad(outer, taus)
        tau = (taus - 10.0 * gradient).tolist()
        recipe.on_batch(recipe.model, x, y, 0.01)
        assert [*recipe.report().values()] == pytest.approx(tau, rel=1e-5)
    assert all(1 < value < 20 and abs(value - 4) > 1e-3 for value in tau)


def test_meta_kds_temperatures_stay_in_their_bounds():
    recipe = methods.get("meta-kd", tau_lr=1e6).prepare(net(), usual())
    for _ in range(3):
        recipe.on_batch(recipe.model, INPUTS, LABELS, 0.3)
        assert set(recipe.report().values()) <= {1.0, 20.0}


def test_meta_kd_without_validation_data_is_refused():
    with pytest.raises(TstarError, match="validation data"):
        methods.get("meta-kd").prepare(net(), usual(validation=None))
    with pytest.raises(TstarError, match="validation data"):
        methods.get("meta-kd").prepare(net(), usual(validation=(INPUTS[:0], LABELS[:0])))
