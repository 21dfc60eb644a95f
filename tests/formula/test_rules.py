"""The closed-form rules against the values in the literature and against the cosine head they stand for."""

import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from tstar import TstarError
from tstar.formula import rules


@pytest.mark.parametrize(("K", "s"), [(10, 3.11), (100, 6.50), (1000, 9.77)])
def test_adacos_scale_has_its_known_values(K, s):
    assert rules.adacos_scale(K) == pytest.approx(s, abs=0.005)


@pytest.mark.parametrize(("K", "s"), [(10, 6.11), (100, 9.10), (1000, 11.49)])
def test_normface_scale_has_its_known_values(K, s):
    assert rules.normface_scale(K) == pytest.approx(s, abs=0.005)


def test_the_normface_scale_reaches_its_probability():
    """With the classes' weights as a simplex, a feature on its own weight has probability P at the bound."""
    K, P = 7, 0.99
    s = rules.normface_scale(K, P)
    cosines = torch.full((K,), -1 / (K - 1), dtype=torch.float64)
    cosines[0] = 1.0
    assert float((s * cosines).softmax(0)[0]) == pytest.approx(P, abs=1e-12)


def test_adacos_is_refused_for_two_classes():
    with pytest.raises(TstarError, match="K >= 3"):
        rules.adacos_scale(2)


def test_the_smallest_inputs_that_a_rule_takes():
    assert rules.adacos_scale(3) == pytest.approx(math.sqrt(2) * math.log(2))
    assert rules.normface_scale(2, 0.55) == pytest.approx(0.5 * math.log(0.55 / 0.45))
    assert rules.sqrt_m(1) == 1.0
    assert rules.from_scale(0.5, 3) == pytest.approx(2.0)
    assert rules.mup_readout(256, 64, output_mult=8.0) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: rules.normface_scale(10, 0.5),
        lambda: rules.normface_scale(10, 1.0),
        lambda: rules.normface_scale(1),
        lambda: rules.from_scale(0.0, 64),
        lambda: rules.from_scale(math.inf, 64),
        lambda: rules.mup_readout(64, 64, output_mult=0.0),
        lambda: rules.mup_readout(64, 0),
        lambda: rules.sqrt_m(2.5),
        lambda: rules.sqrt_m(0),
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


def test_sqrt_m_is_attentions_own_scale():
    """softmax(QKᵀ/T)V with T = sqrt(d_k) is what torch computes."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 5, 24, generator=generator, dtype=torch.float64) for _ in range(3))
    by_hand = torch.softmax(q @ k.mT / rules.sqrt_m(24), dim=-1) @ v
    assert torch.allclose(by_hand, F.scaled_dot_product_attention(q, k, v), atol=1e-12)


def test_every_rule_by_hand_on_one_axis():
    found = {r.name: r.temperature for r in rules.on_one_axis(256, 10, 2.0, base_features=64)}
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
    assert list(found) == list(expected) == rules.names()
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_rule_without_its_fact_says_so_in_place_of_a_number():
    found = {r.name: r for r in rules.on_one_axis(256)}
    assert found["mup-readout"].temperature is None
    assert "base_features" in found["mup-readout"].reason
    assert found["ours-csg"].temperature is None
    assert found["sqrt-m"].temperature == 16.0
    with pytest.raises(TstarError, match="adacos-fixed"):
        rules.rule("adacos", 256)


def test_rules_and_method_names_come_without_torch():
    code = (
        "import sys, tstar.methods, tstar.formula.rules; tstar.formula.rules.on_one_axis(64, 10);"
        "tstar.methods.list(); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    spoiled = code.replace("sys.exit", "import torch; sys.exit")
    assert subprocess.run([sys.executable, "-c", spoiled], check=False).returncode == 1
