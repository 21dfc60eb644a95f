"""The theory of the three speeds, each statement measured on a real step in float64."""

import copy
import json
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tstar
from tstar import TstarError
from tstar.formula import similar
from tstar.surgery.finding import find_head
from tstar.surgery.reparametrization import param_groups
from tstar.surgery.speed import Speeds, backbone_scale, matched_backbone

B, M, K = 32, 24, 5
SGD, ADAM = ("sgd", 0.1), ("adam", 1e-3)


def network(scale=1.0, bias=True):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, M), nn.Tanh(), nn.Linear(M, K, bias=bias)).double()
    with torch.no_grad():
        model[0].weight *= scale
    return model


def batch():
    return torch.randn(B, 10, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def moved(model, optimizer, row=3, label=2):
    """How far one real step moves a sample's own logit for a gradient of one there, the head alone learning.

    The loss is that logit of that sample alone, over the batch size: what a mean over the batch gives a sample.
    """
    model = copy.deepcopy(model).train()
    head = model[2]
    layer = head.layer if isinstance(head, tstar.TemperedHead) else head
    step = optimizer(layer.parameters())
    x = batch()
    before = model(x)[row, label]
    (-before / B).backward()
    step.step()
    return float((model(x)[row, label] - before).detach())


def steady(momentum, lr=0.1):
    """SGD whose momentum has settled: a constant gradient g moves by lr·g/(1 − μ) a step."""
    return lambda parameters: torch.optim.SGD(parameters, lr=lr / (1 - momentum))


@pytest.mark.parametrize("norm", ["batch", "layer", None, "plain"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_moves_a_logit_by_lr_h2_over_b_t2(norm, bias, momentum):
    model = network(bias=bias)
    if norm != "plain":
        model = tstar.temper(model, 4.0, norm=norm)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
    expected = [moved(model, steady(momentum), row) for row in range(B)]
    got = tstar.speeds(model, batch(), optimizer)
    assert got.head == pytest.approx(sum(expected) / B, rel=1e-9)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("T", [1.0, 4.0])
def test_adam_moves_a_logit_by_lr_h1_over_t(bias, T):
    """The first step of Adam is lr·sign(g): a logit of the sample that makes the gradient moves by lr·‖h‖₁/T."""
    model = tstar.temper(network(bias=bias), T, norm=None)
    adam = lambda p: torch.optim.Adam(p, lr=1e-3, eps=1e-30)  # noqa: E731
    expected = [moved(model, adam, row) for row in range(B)]
    assert tstar.speeds(model, batch(), ADAM).head == pytest.approx(sum(expected) / B, rel=1e-6)


def test_t_divides_the_logits_and_the_gradient_by_t_and_the_head_by_its_square():
    one, hot = (tstar.speeds(tstar.temper(network(), t), batch(), SGD) for t in (1.0, 8.0))
    assert hot.logits == pytest.approx(one.logits / 8)
    assert hot.gradient == pytest.approx(one.gradient / 8)
    assert hot.head == pytest.approx(one.head / 64)
    one, hot = (tstar.speeds(tstar.temper(network(), t), batch(), ADAM) for t in (1.0, 8.0))
    assert hot.head == pytest.approx(one.head / 8)
    assert one.backbone == hot.backbone == 1.0


@pytest.mark.parametrize("sigma", [0.05, 0.2, 3.0])
def test_bn_multiplies_the_backbones_gradient_by_one_over_sigma(sigma):
    """Exactly so for features without covariance with the gradient; here within the spread of one batch."""
    torch.manual_seed(0)
    body = nn.Linear(200, 64, bias=False).double()
    nn.init.orthogonal_(body.weight)
    model = nn.Sequential(body, nn.Linear(64, 10, bias=False).double())
    x = sigma * torch.randn(4096, 200, dtype=torch.float64)
    got = tstar.speeds(tstar.temper(model, 1.0), x, SGD)
    assert got.gradient == pytest.approx(1 / sigma, rel=0.03)
    assert got.head == pytest.approx(got.plain_head / sigma**2, rel=0.03)
    assert matched_backbone(model, find_head(model), x) == pytest.approx(sigma, rel=0.03)


def test_bn_hears_a_rescaled_body_as_before():
    """Features c times as large: the same logits and the same head; the gradient into them is 1/c."""
    small, large = (tstar.temper(nn.Sequential(*network()), 2.0) for _ in range(2))
    small[2].norm.eps = large[2].norm.eps = 1e-15
    x, h = batch(), network()[:2]
    features = h(x).detach()
    grads = []
    for model, c in ((small, 1.0), (large, 5.0)):
        f = (c * features).requires_grad_()
        z = model[2](f)
        F.cross_entropy(z, torch.arange(B) % K).backward()
        grads.append((z.detach(), f.grad, model[2].layer.weight.grad))
    torch.testing.assert_close(grads[0][0], grads[1][0])
    torch.testing.assert_close(grads[0][1], 5 * grads[1][1])
    torch.testing.assert_close(grads[0][2], grads[1][2])


def test_layer_norm_sets_the_square_of_the_features_to_m():
    model = tstar.temper(network(scale=0.1, bias=False), 1.0, norm="layer")
    model[2].norm.eps = 0.0
    got = tstar.speeds(model, batch(), torch.optim.SGD(model.parameters(), lr=0.1))
    assert got.head == pytest.approx(0.1 * M / B)
    assert got.gradient > 1.5  # it divides by each sample's deviation, here well below one


def test_a_learning_rate_factor_of_the_head_is_its_speed_alone():
    model = network()
    base = torch.optim.SGD(model.parameters(), lr=0.1)
    groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.3}]
    one = tstar.speeds(model, batch(), base)
    three = tstar.speeds(model, batch(), torch.optim.SGD(groups, lr=0.1))
    assert three.head == pytest.approx(3 * one.head)
    assert (three.gradient, three.logits) == (one.gradient, one.logits) == (1.0, one.plain_logits)


def test_label_smoothing_changes_no_speed_but_bounds_the_gradient():
    """dL/dz = p − y' with y' = (1 − ε)·y + ε/K: another signal at the logits, the same way back."""
    model, y, eps = network(), torch.arange(B) % K, 0.2
    z = model(batch())
    z.retain_grad()
    F.cross_entropy(z, y, label_smoothing=eps, reduction="sum").backward()
    target = (1 - eps) * F.one_hot(y, K) + eps / K
    torch.testing.assert_close(z.grad, z.softmax(1).detach() - target)


@pytest.mark.parametrize("m", [0.25, 2.0])
def test_an_output_multiplier_is_a_temperature(m):
    """µP's z = m·W·h is training at T = 1/m, so that it changes the three speeds in the same way."""

    class Multiplied(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x):
            return m * self.model(x)

    runs = []
    for model in (Multiplied(network()), tstar.temper(network(), 1 / m, norm=None)):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(20):
            optimizer.zero_grad()
            F.cross_entropy(model(batch()), torch.arange(B) % K).backward()
            optimizer.step()
        runs.append(model(batch()).detach())
    torch.testing.assert_close(*runs)


@pytest.mark.parametrize("T", [2.0, 8.0])
def test_matched_tempering_without_norm_is_the_plain_model_with_another_head(T):
    """Head: init/T, lr/T², decay·T². Backbone: the plain model's gradient through the undivided head, so lr·T, decay/T.

    So the matched backbone starts out at the plain model's own speed: W is T times the divided head.
    """
    x, y = batch(), torch.arange(B) % K
    matched = tstar.temper(network(), T, norm=None, backbone="matched")
    plain = network()
    with torch.no_grad():
        for p in plain[2].parameters():
            p /= T
    lr, decay = 0.05, 1e-3
    runs = []
    for model, groups in (
        (matched, [{"params": matched.parameters(), "lr": lr, "weight_decay": decay}]),
        (
            plain,
            [
                {"params": plain[0].parameters(), "lr": lr * T, "weight_decay": decay / T},
                {"params": plain[2].parameters(), "lr": lr / T**2, "weight_decay": decay * T**2},
            ],
        ),
    ):
        optimizer = torch.optim.SGD(groups, momentum=0.9)
        logits = []
        for _ in range(50):
            optimizer.zero_grad()
            z = model(x)
            F.cross_entropy(z, y).backward()
            optimizer.step()
            logits.append(z.detach())
        runs.append(torch.stack(logits))
    torch.testing.assert_close(*runs, rtol=1e-9, atol=1e-9)
    assert (runs[0][-1] - runs[0][0]).abs().max() > 0.01


def test_the_first_gradient_of_a_matched_backbone_is_the_plain_models_but_for_the_softmax():
    """The same signal at the logits reaches the body alike; only softmax(z/T) makes it another one."""
    plain, x = network(), batch()
    matched = tstar.temper(plain, 8.0, norm=None, backbone="matched")
    signal = torch.randn(B, K, dtype=torch.float64)
    for model in (plain, matched):
        model.zero_grad()
        model(x).backward(signal)
    torch.testing.assert_close(plain[0].weight.grad, matched[0].weight.grad)


def test_groups_on_a_plain_model_give_the_same_speeds():
    model, T = network(), 4.0
    tempered = tstar.speeds(tstar.temper(model, T, norm=None), batch(), SGD)
    with pytest.warns(tstar.TstarWarning, match="presupposes"):
        groups = param_groups(model, T, 0.1)
    got = tstar.speeds(model, batch(), torch.optim.SGD(groups, momentum=0.9))
    assert (got.head, got.logits) == pytest.approx((tempered.head, tempered.logits))


def test_the_record_prints_compares_and_becomes_json():
    model = tstar.temper(network(scale=0.2), 1.0)
    got = tstar.speeds(model, batch(), SGD)
    text = str(got)
    assert f"The backbone learns {got.backbone:.2g} times as fast as in your plain model." in text
    assert len(got.cautions) == 3
    assert got == tstar.speeds(model, batch(), SGD)
    said = json.loads(json.dumps(got.to_dict()))
    assert said["gradient"] == got.gradient
    assert said["cautions"] == list(got.cautions)
    adam = tstar.speeds(model, batch(), ADAM)
    assert "does not see a gradient's size" in str(adam)
    assert not any("backbone" in caution for caution in adam.cautions)
    assert tstar.speeds(network(), batch(), SGD).cautions == ()


def test_a_speed_is_worth_a_caution_beyond_a_factor_of_two():
    for ratio, said in ((2.0, 0), (2.01, 3), (0.5, 0), (0.49, 3)):
        got = Speeds(ratio, 1.0, ratio, 1.0, ratio, "sgd", 0.1, 1.0)
        assert len(got.cautions) == said


def test_it_takes_batches_as_loaders_and_trainers_give_them_and_changes_nothing():
    model = tstar.temper(network(), 3.0)
    before, random = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    whole = tstar.speeds(model, batch(), SGD)
    assert whole == tstar.speeds(model, [batch(), torch.arange(B)], SGD)
    assert whole == tstar.speeds(model, (batch(),), SGD)
    assert whole == tstar.speeds(model, {"input": batch()}, SGD)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(random, torch.get_rng_state())
    assert model.training


def test_frozen_backbones_zero_heads_and_missing_facts():
    frozen = network()
    frozen[0].requires_grad_(False)
    assert tstar.speeds(tstar.temper(frozen, 2.0), batch(), SGD).backbone is None
    zero = network()
    nn.init.zeros_(zero[2].weight)
    got = tstar.speeds(tstar.temper(zero, 2.0, norm=None), batch(), SGD)
    assert got.gradient is None
    assert math.isfinite(got.head)
    with pytest.raises(TstarError, match="needs the optimizer"):
        tstar.speeds(network(), batch(), None)
    with pytest.raises(TstarError, match="at least 8 samples"):
        tstar.speeds(network(), batch()[:3], SGD)


def test_a_convolution_head_and_one_label_per_position():
    conv = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    got = tstar.speeds(tstar.temper(conv, 2.0), torch.randn(16, 3, 6, 6), SGD)
    assert got.head > 0
    tokens = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 4))
    got = tstar.speeds(tstar.temper(tokens, 2.0), torch.randn(4, 5, 6), SGD)
    assert got.gradient > 0


@pytest.mark.parametrize(("scale", "told"), [(0.05, True), (1.0, False)])
def test_the_advice_says_when_the_backbone_would_learn_much_faster_or_slower(
    scale, told, monkeypatch
):
    near = similar.Expectation(2.0, 1.0, 3.0, 10, 0, 20, 0.1, far=False, gained=True, rows=())
    monkeypatch.setattr(similar, "nearest", lambda *given: near)
    model = network(scale)
    training = {"optimizer": ("sgd", 0.1), "steps": 3}  # a budget of a low T
    advice = tstar.recommend(model, example_input=batch(), **training)
    speed = tstar.speeds(tstar.temper(model, float(advice), head="2"), batch(), SGD).backbone
    speed *= advice.lr_factor
    codes = [notice.code for notice in advice.notices]
    assert ("backbone-speed" in codes) == (not 0.5 <= speed <= 2.0)
    assert "backbone-speed" not in [n.code for n in tstar.recommend(model, **training).notices]
    adam = tstar.recommend(model, example_input=batch(), optimizer=ADAM, steps=3)
    assert "backbone-speed" not in [notice.code for notice in adam.notices]
    if told:
        said = next(n.message for n in advice.notices if n.code == "backbone-speed")
        assert f"learns {speed:.2g} times as fast" in said


def test_the_backbone_as_a_user_gives_it():
    model = network()
    head = find_head(model)
    assert backbone_scale(None, model, head, None, "batch") is None
    assert backbone_scale(3, model, head, None, "batch") == 3.0
    assert backbone_scale("matched", model, head, None, None) == 1.0  # nothing to match
    measured = matched_backbone(model, head, batch(), "batch")
    assert backbone_scale("matched", model, head, batch(), "batch") == measured
    layered = matched_backbone(model, head, batch(), "layer")
    assert backbone_scale("matched", model, head, batch(), "layer") == layered != measured
    for wrong, message in (("louder", "'matched' or None, got 'louder'"), (-1.0, "positive")):
        with pytest.raises(TstarError, match=message):
            backbone_scale(wrong, model, head, batch(), "batch")
    with pytest.raises(TstarError, match="pass example_input=batch"):
        backbone_scale("matched", model, head, None, "batch")


def test_in_a_tempered_model_its_own_norm_is_matched():
    plain, x = network(0.2), batch()
    before = matched_backbone(plain, find_head(plain), x)
    tempered = tstar.temper(plain, 1.0)
    assert matched_backbone(tempered, find_head(tempered), x, None) == pytest.approx(before)
    divided = tstar.temper(plain, 1.0, norm=None)
    assert matched_backbone(divided, find_head(divided), x) == 1.0
    alone = nn.Linear(10, K).double()
    assert matched_backbone(alone, find_head(alone), x) == 1.0  # no backbone
    nn.init.zeros_(plain[2].weight)
    with pytest.raises(TstarError, match="No gradient reaches the backbone"):
        matched_backbone(plain, find_head(plain), x)


def test_one_of_two_tempered_heads_is_chosen():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.one, self.two = (nn.Linear(10, M), nn.Linear(M, K), nn.Linear(M, K))

        def forward(self, x):
            h = self.body(x).relu()
            return (self.one(h) + self.two(h)) / 2

    model = tstar.temper(Two().double(), 2.0, head="all")
    model.two.set_temperature(4.0)
    with pytest.raises(TstarError, match=r"Found 2 tempered heads \('one', 'two'\)"):
        tstar.speeds(model, batch(), SGD)
    for name, T in (("one", 2.0), ("two.layer", 4.0)):
        assert tstar.speeds(model, batch(), SGD, head=name).temperature == T


def test_the_table_by_hand():
    text = str(Speeds(0.5, 2.0, 3.0, 1.5, None, "sgd", 0.1, 4.0)).splitlines()
    assert [line.split() for line in text[:4]] == [
        ["plain", "T", "=", "4"],
        ["head:", "Δlogit", "per", "step", "2", "0.5"],
        ["gradient", "into", "the", "backbone", "1", "–"],
        ["size", "of", "the", "logits", "1.5", "3"],
    ]
    assert text[4:] == [
        "The head learns 0.25 times as fast as in your plain model.",
        "The backbone receives no gradient that could be compared.",
        "The logits are 2 times as large as in your plain model.",
    ]
    nothing = Speeds(1.0, 0.0, 0.0, 0.0, 1.0, "sgd", 0.1, 1.0)
    assert "The head learns inf times" in str(nothing)
    assert "The logits are as large as in your plain model." in str(nothing)


@pytest.mark.parametrize(("ratio", "times"), [(1.0, ""), (1.04, ""), (0.996, ""), (1.06, "1.1 times "), (0.94, "0.94 times ")])  # fmt: skip
def test_a_ratio_that_rounds_to_one_is_no_number(ratio, times):
    assert str(Speeds(ratio, 1.0, ratio, 1.0, ratio, "sgd", 0.1, 1.0)).splitlines()[4:] == [
        f"The head learns {times}as fast as in your plain model.",
        f"The backbone learns {times}as fast as in your plain model.",
        f"The logits are {times}as large as in your plain model.",
    ]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_has_no_speed(bad):
    model, x = network(), batch()
    x[3, 2] = bad
    head = find_head(model)
    for given in (x, (x,), [x, torch.arange(B)], {"input": x}):
        with pytest.raises(TstarError, match="The batch must be finite"):
            tstar.speeds(model, given, SGD)
        with pytest.raises(TstarError, match="The batch must be finite"):
            matched_backbone(model, head, given)
    for layer, what in ((2, "logits"), (0, "features")):
        with torch.no_grad():
            model[layer].weight[0, 0] = math.nan
        with pytest.raises(TstarError, match=f"The model's {what} must be finite"):
            tstar.speeds(model, batch(), SGD)


@pytest.mark.parametrize("strange", [3, "x", None, {"y": torch.zeros(8, 4)}, torch.zeros(8, 2)])
def test_a_batch_that_the_model_does_not_take(strange):
    model = tstar.temper(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), 2.0)
    with pytest.raises(TstarError, match="must run on the batch, but it raised"):
        tstar.speeds(model, strange, ("sgd", 0.1))
