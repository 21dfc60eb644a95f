"""The rules on one axis, and the methods that train with them, against NumPy."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tstar
from tests.lab.methods import networks as nets
from tests.lab.methods.networks import K, M, net
from tests.test_package import loaded_by
from tstar import TstarError
from tstar.lab import methods
from tstar.lab.methods import rules
from tstar.lab.methods.closed_forms import UnitHead


@pytest.mark.parametrize(
    ("K", "adacos", "normface"), [(10, 3.11, 6.11), (100, 6.50, 9.10), (1000, 9.77, 11.49)]
)
def test_the_scales_have_their_known_values(K, adacos, normface):
    assert rules.adacos_scale(K) == pytest.approx(adacos, abs=0.005)
    assert rules.normface_scale(K) == pytest.approx(normface, abs=0.005)


def test_the_normface_scale_reaches_its_probability():
    """With the classes' weights as a simplex, a feature on its own weight has probability P at the bound."""
    K, P = 7, 0.99
    s = rules.normface_scale(K, P)
    cosines = torch.full((K,), -1 / (K - 1), dtype=torch.float64)
    cosines[0] = 1.0
    assert float((s * cosines).softmax(0)[0]) == pytest.approx(P, abs=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda: rules.normface_scale(10, 1.0),
        lambda: rules.normface_scale(1),
        lambda: rules.from_scale(0.0, 64),
        lambda: rules.rule("mup-readout", 64, base_features=0),
        lambda: rules.rule("sqrt-m", 2.5),
    ],
)
def test_inputs_without_a_temperature_are_refused(call):
    with pytest.raises(TstarError, match="must"):
        call()


def test_a_scale_as_a_temperature_gives_the_cosine_heads_logits():
    """Features of norm sqrt(M) and rows of norm r: w·h/T equals s·cos(w, h)."""
    M, s = 48, 6.5
    generator = torch.Generator().manual_seed(0)
    h = F.normalize(torch.randn(5, M, generator=generator, dtype=torch.float64)) * math.sqrt(M)
    w = F.normalize(torch.randn(3, M, generator=generator, dtype=torch.float64)) / math.sqrt(3)
    cosine = s * F.cosine_similarity(h[:, None], w[None], dim=-1)
    assert torch.allclose(h @ w.T / rules.from_scale(s, M), cosine, atol=1e-12)


def test_the_row_norm_is_that_of_the_default_initialization():
    torch.manual_seed(0)
    rows = torch.nn.Linear(4096, 500).weight.norm(dim=1)
    assert float(rows.detach().mean()) == pytest.approx(rules.ROW_NORM, rel=2e-3)


def test_every_rule_by_hand():
    found = {name: rules.rule(name, 256, 10, 2.0, base_features=64) for name in rules.LABELS}
    r = 1 / math.sqrt(3)
    expected = {
        "default": 1.0,
        "sqrt-m": 16.0,
        "heated-up": 1.0,
        "adacos-fixed": r * 16 / (math.sqrt(2) * math.log(9)),
        "normface-bound": r * 16 / (0.9 * math.log(9 * 0.99 / 0.01)),
        "mup-readout": 4.0,
        "ours-base": 0.7239 * 16 - 4.706,
        "ours-csg": 0.4111 * 16 + 6.848 - 2.024 * math.log(2),
        "ours-cn": 0.4051 * 16 + 6.656 - 1.973 * math.log(10),
        "ours-csgcn": 0.3192 * 16 + 20.74 + 3.746 * math.log(2) - 7.38 * math.log(10),
    }
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "missing"),
    [("mup-readout", "base_features"), ("ours-csg", "csg"), ("adacos", "adacos-fixed")],
)
def test_a_rule_without_its_fact_and_an_unknown_one_say_so(name, missing):
    with pytest.raises(TstarError, match=missing):
        rules.rule(name, 256)


def test_method_names_come_without_torch():
    assert "torch" not in loaded_by("import tstar.lab.methods; tstar.lab.methods.list()")


@pytest.mark.parametrize(
    ("name", "T"), [("default", 1), ("fixed:temperature=3.0", 3), ("sqrt-m", math.sqrt(M))]
)
def test_the_logits_divided_by_a_number(name, T):
    value, z, _ = nets.loss_of(name)
    assert value == pytest.approx(nets.ce(z / T, nets.Y), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "T"),
    [
        ("ours-base", 1.0),  # 0.7239·sqrt(7) − 4.706 < 1: clipped
        ("ours-csg", 0.4111 * math.sqrt(M) + 6.848 - 2.024 * math.log(2)),
        ("ours-cn", 0.4051 * math.sqrt(M) + 6.656 - 1.973 * math.log(K)),
        ("ours-csgcn", 0.3192 * math.sqrt(M) + 20.74 + 3.746 * math.log(2) - 7.38 * math.log(K)),
    ],
)
def test_ours(name, T):
    value, *_ = nets.loss_of(name)
    net = nets.Net()
    h = net.features(nets.X).detach().numpy()
    h = (h - h.mean(0)) / np.sqrt(h.var(0) + 1e-5)
    z = h @ net.head.weight.detach().numpy().T + net.head.bias.detach().numpy()
    assert value == pytest.approx(nets.ce(z / T, nets.Y), rel=1e-12)


def test_the_shapes_of_ours_over_twenty_epochs():
    """From 1 to T over epochs 1–20, or by epoch 5; or T/4 to epoch 15 and T from 16 on."""
    T = tstar.temperature(nets.WIDTH, nets.CLASSES, variant="cn")

    def over(kind: str) -> list[float]:
        recipe = methods.get("ours-cn", schedule=kind).prepare(net(), nets.usual(epochs=20))
        seen = []
        for epoch in range(1, 21):
            assert recipe.on_epoch(epoch, 20) == 1.0
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
    assert methods.get("ours-cn").prepare(net(), nets.usual()).on_epoch is None


def test_ours_with_csg_needs_it():
    with pytest.raises(TstarError, match="csg"):
        methods.get("ours-csgcn").prepare(net(), nets.usual(csg=None))


@pytest.mark.parametrize(("epoch", "factor"), [(1, 1), (15, 1), (16, 4), (20, 4)])
def test_heated_up(epoch, factor):
    recipe = methods.get("heated-up").prepare(nets.Net(), nets.facts())
    lr_factor = recipe.on_epoch(epoch, 20)
    value = recipe.loss(recipe.model(nets.X), nets.Y, nets.X).item()
    h, w = nets.Net().features(nets.X).detach().numpy(), nets.Net().head.weight.detach().numpy()
    h = (h - h.mean(0)) / np.sqrt(h.var(0) + 1e-5)
    w = w / np.linalg.norm(w, axis=1, keepdims=True)
    assert value == pytest.approx(nets.ce(16 / math.sqrt(M) / factor * h @ w.T, nets.Y), rel=1e-6)
    assert lr_factor == {1: 1.0, 4: 0.1}[factor]


def test_adacos():
    value, *_ = nets.loss_of("adacos-fixed")
    assert value == pytest.approx(nets.cosine_loss(math.sqrt(2) * math.log(K - 1)), rel=1e-6)


def test_the_bound_at_the_probability():
    value, *_ = nets.loss_of("normface-bound")
    assert value == pytest.approx(nets.cosine_loss(0.8 * math.log(4 * 0.99 / 0.01)), rel=1e-6)


@pytest.mark.parametrize("kind", ["cosine", "batch"])
def test_the_length_of_the_weights_does_not_matter(kind):
    layer = nn.Linear(5, 3, dtype=torch.float64)
    h = nets.random(8, 5)
    once = UnitHead(layer, 0.5, kind)(h)
    with torch.no_grad():
        layer.weight *= torch.tensor([[2.0], [3.0], [0.1]])
    assert torch.allclose(UnitHead(layer, 0.5, kind)(h), once)


def test_cosines_are_bounded_and_divided_by_the_temperature():
    layer, h = nn.Linear(5, 3, dtype=torch.float64), nets.random(8, 5)
    once, twice = (UnitHead(layer, T, "cosine")(h) for T in (1.0, 2.0))
    assert float(once.detach().abs().max()) <= 1
    assert torch.allclose(once / 2, twice)
    assert torch.allclose(UnitHead(layer, 1.0, "cosine")(7 * h), once)
