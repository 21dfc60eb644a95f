"""What is true of the methods, whatever the numbers."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tstar
from tstar import TstarError, methods
from tstar.methods.ctkd import AdversarialTemperature
from tstar.methods.distilling import divergence
from tstar.methods.meta_kd import lookahead_loss

K, M = 6, 8


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def net(seed: int = 0, classes: int = K) -> nn.Module:
    model = nn.Sequential(nn.Linear(4, M), nn.BatchNorm1d(M), nn.Tanh(), nn.Linear(M, classes))
    model = model.double()
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(random(*p.shape, seed=100 * seed + i))
    return model


def facts(**changes: object) -> methods.Facts:
    given = {"num_features": M, "num_classes": K, "teacher": net(3), "csg": 2.0, "epochs": 8}
    given |= {"validation": (random(9, 4, seed=5), torch.arange(9) % K)}
    return methods.Facts(**(given | changes))


X, Y = random(12, 4, seed=50), torch.arange(12) % K


# Insert LN
@pytest.mark.parametrize(("classes", "cap"), [(2, 0.881), (10, 0.757), (20, 0.838), (100, 0.996)])
def test_insert_ln_without_affine_caps_the_largest_probability(classes, cap):
    head = methods.get("insert-ln", affine=False).prepare(
        nn.Sequential(nn.Linear(1, classes, dtype=torch.float64)), facts(num_classes=classes)
    )
    layer = head.model[0].layer
    with torch.no_grad():
        layer.bias.zero_()
        layer.weight.zero_()[0] = 1e6  # one logit far above equal others: the extreme case
    top = head.model(torch.ones(1, 1, dtype=torch.float64)).softmax(1).max().item()
    assert top == pytest.approx(cap, abs=6e-4)
    with torch.no_grad():
        layer.weight.copy_(random(classes, 1) * 1e3)
    assert head.model(torch.ones(1, 1, dtype=torch.float64)).softmax(1).max().item() <= top


def test_insert_ln_with_affine_has_no_cap_and_trains_it():
    recipe = methods.get("insert-ln").prepare(net(), facts())
    names = [name for name, _ in recipe.model.named_parameters()]
    assert "3.norm.weight" in names
    assert "3.norm.bias" in names


# Relaxed softmax
def test_relaxed_softmax_starts_as_the_default():
    relaxed = methods.get("relaxed-softmax").prepare(net(), facts())
    default = methods.get("default").prepare(net(), facts())
    assert torch.allclose(relaxed.model(X), default.model(X), rtol=2e-6, atol=0)


def test_relaxed_softmax_with_alpha_one_is_the_default():
    relaxed = methods.get("relaxed-softmax").prepare(net(), facts())
    default = methods.get("default").prepare(net(), facts())
    with torch.no_grad():
        relaxed.model[3].alpha.bias.fill_(math.log(math.expm1(1 - 1e-6)))
    a, b = (r.loss(r.model(X), Y, X) for r in (relaxed, default))
    assert a.item() == pytest.approx(b.item(), rel=1e-12)


# Knowledge distillation
def test_kd_at_infinite_temperature_has_the_gradient_of_logit_matching():
    """τ²·∂KL/∂z_s → (z_s − z_t)/K for centered logits: that of ‖z_s − z_t‖²/(2K)."""
    z_t = random(4, K, seed=1)
    z_t = z_t - z_t.mean(1, keepdim=True)
    z_s = random(4, K, seed=2)
    z_s = (z_s - z_s.mean(1, keepdim=True)).requires_grad_()
    (soft,) = torch.autograd.grad(divergence(z_s, z_t, 1e4), z_s)
    match = ((z_s - z_t) ** 2).sum(1).mean() / (2 * K)
    (hard,) = torch.autograd.grad(match, z_s)
    assert torch.allclose(soft, hard, rtol=1e-3, atol=1e-7)
    (at_two,) = torch.autograd.grad(divergence(z_s, z_t, 2.0), z_s)
    assert not torch.allclose(at_two, hard, rtol=1e-3, atol=1e-7)


def test_the_teacher_is_frozen_and_in_eval_mode_and_the_callers_is_not_touched():
    teacher = net(3).train()
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    recipe = methods.get("kd").prepare(net(), facts(teacher=teacher))
    recipe.loss(recipe.model(X), Y, X).backward()
    assert teacher.training
    assert all(p.grad is None and p.requires_grad for p in teacher.parameters())
    assert all(torch.equal(before[name], value) for name, value in teacher.state_dict().items())
    in_eval = methods.get("kd").prepare(net(), facts(teacher=net(3).eval()))
    a, b = (r.loss(r.model(X), Y, X).item() for r in (recipe, in_eval))
    assert a == b


@pytest.mark.parametrize("name", ["kd", "meta-kd", "ctkd", "logit-standardization"])
def test_distillation_without_a_teacher_or_with_another_ones_classes_is_refused(name):
    with pytest.raises(TstarError, match="needs a teacher"):
        methods.get(name).prepare(net(), facts(teacher=None))
    with pytest.raises(TstarError, match="6 classes, got 9"):
        methods.get(name).prepare(net(), facts(teacher=net(3, classes=9)))


def test_a_teacher_whose_classes_cannot_be_read_is_caught_at_its_first_output():
    class Strange(nn.Module):
        def forward(self, x):
            return x.new_zeros(len(x), 9)

    recipe = methods.get("kd").prepare(net(), facts(teacher=Strange()))
    with pytest.raises(TstarError, match="same classes"):
        recipe.loss(recipe.model(X), Y, X)


# CTKD
@pytest.mark.parametrize("epoch", [1, 5, 10, 20])
def test_ctkds_temperature_climbs_the_loss_that_the_student_descends(epoch):
    recipe = methods.get("ctkd").prepare(net(), facts())
    (tau,) = recipe.extra
    assert tau.factor == pytest.approx(0.5 * (1 + math.cos(math.pi / 10)) - 1)  # epoch 1 until told
    assert recipe.on_epoch(epoch, 20) == 1.0  # the learning rate is left alone
    assert isinstance(tau, AdversarialTemperature)
    assert tau().item() == pytest.approx(1 + 20 / (1 + math.exp(-1)), rel=1e-6)
    loss = recipe.loss(recipe.model(X), Y, X)
    loss.backward()

    def at(u: float) -> float:
        with torch.no_grad():
            tau.u.fill_(u)
            return recipe.loss(recipe.model(X), Y, X).item()

    slope = (at(1 + 1e-4) - at(1 - 1e-4)) / 2e-4
    lam = 0.5 * (1 + math.cos(math.pi * min(epoch, 10) / 10)) - 1
    assert tau.u.grad.item() == pytest.approx(lam * slope, rel=1e-4)
    # One SGD step on u at this gradient raises the loss.
    assert at(1 - 0.01 * tau.u.grad.item()) > at(1.0)


def test_ctkds_temperature_is_trained_by_the_optimizer():
    recipe = methods.get("ctkd").prepare(net(), facts())
    assert sum(p.numel() for p in recipe.extra.parameters()) == 1


# Meta KD
def test_meta_kds_hypergradient_equals_a_finite_difference():
    """∇_τ L_val(θ − η∇_θ L_train(θ, τ)) against central differences of two real SGD steps."""
    teacher_logits = net(3).eval()(X).detach()
    validation = (random(9, 4, seed=5), torch.arange(9) % K)

    def train_loss(tau_s, tau_t):
        def loss(logits, targets, inputs):
            soft = divergence(logits, teacher_logits, tau_s, tau_t)
            return 0.1 * F.cross_entropy(logits, targets) + 0.9 * soft

        return loss

    def after_a_real_step(tau_s: float, tau_t: float) -> float:
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        train_loss(tau_s, tau_t)(model(X), Y, X).backward()
        optimizer.step()
        return F.cross_entropy(model(validation[0]), validation[1]).item()

    taus = torch.tensor([3.0, 5.0], dtype=torch.float64, requires_grad=True)
    outer = lookahead_loss(net(), train_loss(taus[0], taus[1]), (X, Y), validation, lr=0.3)
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
    recipe = methods.get("meta-kd").prepare(net(), facts())
    before = {name: value.clone() for name, value in recipe.model.state_dict().items()}
    state = torch.get_rng_state()
    recipe.on_batch(recipe.model, X, Y, 0.3)
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(before[n], value) for n, value in recipe.model.state_dict().items())
    assert all(p.grad is None for p in recipe.model.parameters())
    moved = recipe.report()
    assert moved["tau_student"] != 4.0
    assert moved["tau_teacher"] != 4.0

    def val_loss(tau_s: float, tau_t: float) -> float:
        teacher_logits = net(3).eval()(X).detach()

        def loss(logits, targets, inputs):
            soft = divergence(logits, teacher_logits, tau_s, tau_t)
            return 0.1 * F.cross_entropy(logits, targets) + 0.9 * soft

        validation = (random(9, 4, seed=5), torch.arange(9) % K)
        return lookahead_loss(net(), loss, (X, Y), validation, lr=0.3).item()

    assert val_loss(moved["tau_student"], moved["tau_teacher"]) < val_loss(4.0, 4.0)


def test_meta_kd_takes_the_validation_data_in_turn_with_its_own_step_size():
    """τ ← τ − 10·∂L_val/∂τ on rows 0–3 of the validation part, then on rows 4–7."""
    x, y = X[:4], Y[:4]
    held_out = facts().validation
    recipe = methods.get("meta-kd").prepare(net(), facts())
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
    recipe = methods.get("meta-kd", tau_lr=1e6).prepare(net(), facts())
    for _ in range(3):
        recipe.on_batch(recipe.model, X, Y, 0.3)
        assert set(recipe.report().values()) <= {1.0, 20.0}


def test_meta_kd_without_validation_data_is_refused():
    with pytest.raises(TstarError, match="validation data"):
        methods.get("meta-kd").prepare(net(), facts(validation=None))
    with pytest.raises(TstarError, match="validation data"):
        methods.get("meta-kd").prepare(net(), facts(validation=(X[:0], Y[:0])))


# Learned temperature
def test_the_learned_temperature_is_clamped_and_can_come_back():
    recipe = methods.get("learned-temperature").prepare(net(), facts())
    head = recipe.model[3]
    for far, scale in ((50.0, 100.0), (-50.0, 1 / 512)):
        with torch.no_grad():
            head.log_scale.fill_(far)
        recipe.loss(recipe.model(X), Y, X).backward()
        assert head.log_scale.exp().item() == pytest.approx(scale)
        assert head.log_scale.grad.item() != 0.0
        head.log_scale.grad = None


# All of them
ALL = [name for name in methods.list() if name != "temperature-check"]


@pytest.mark.parametrize("name", ALL)
def test_prepare_leaves_the_given_model_and_the_generator_alone(name):
    model = net()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    modules, known = [type(m) for m in model.modules()], facts()
    state = torch.get_rng_state()
    recipe = methods.get(name).prepare(model, known)
    assert torch.equal(state, torch.get_rng_state())
    optimizer = torch.optim.SGD(recipe.model.parameters(), 0.5)
    recipe.loss(recipe.model(X), Y, X).backward()
    optimizer.step()
    assert [type(m) for m in model.modules()] == modules
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize("name", ALL)
def test_every_method_takes_a_convolution_as_output_layer(name):
    def conv(classes: int = K) -> nn.Module:
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(3, M, 3), nn.ReLU(), nn.Conv2d(M, classes, 1), _Pool())

    x = torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    recipe = methods.get(name).prepare(conv(), facts(teacher=conv(), head="2"))
    logits = recipe.model(x)
    assert logits.shape == (5, K)
    assert torch.isfinite(recipe.loss(logits, torch.arange(5), x))


class _Pool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def test_a_step_of_a_schedule_reaches_the_heads_of_ours():
    for kind in ("linear", "cosine", "warmup", "step"):
        recipe = methods.get("ours-cn", schedule=kind).prepare(net(), facts())
        target = tstar.temperature(M, K, variant="cn")
        seen = []
        for epoch in range(1, 9):
            assert recipe.on_epoch(epoch, 8) == 1.0
            seen.append(float(recipe.model[3].temperature))
        assert seen[0] == pytest.approx(target / 4 if kind == "step" else 1.0)
        assert seen[-1] == pytest.approx(target, rel=1e-6)
        assert seen == sorted(seen)
        assert np.ptp(seen) > 1
    assert methods.get("ours-cn").prepare(net(), facts()).on_epoch is None


def test_the_shapes_of_ours_over_twenty_epochs():
    """From 1 to T over epochs 1–20, or by epoch 5; or T/4 to epoch 15 and T from 16 on."""
    T = tstar.temperature(M, K, variant="cn")

    def over(kind: str) -> list[float]:
        recipe = methods.get("ours-cn", schedule=kind).prepare(net(), facts(epochs=20))
        seen = []
        for epoch in range(1, 21):
            recipe.on_epoch(epoch, 20)
            seen.append(float(recipe.model[3].temperature))
        return seen

    ramp = [1 + (T - 1) * i / 19 for i in range(20)]
    wave = [T + (1 - T) * (1 + math.cos(math.pi * i / 19)) / 2 for i in range(20)]
    assert over("linear") == pytest.approx(ramp, rel=1e-6)
    assert over("cosine") == pytest.approx(wave, rel=1e-6)
    assert over("warmup") == pytest.approx(
        [1 + (T - 1) * min(i, 4) / 4 for i in range(20)], rel=1e-6
    )
    assert over("step") == pytest.approx([T / 4] * 15 + [T] * 5, rel=1e-6)


def test_ours_with_csg_needs_it():
    with pytest.raises(TstarError, match="csg"):
        methods.get("ours-csgcn").prepare(net(), facts(csg=None))
