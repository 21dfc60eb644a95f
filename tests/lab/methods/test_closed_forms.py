"""The rules on one axis, and the methods that train with them, against NumPy."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.lab.methods.networks import H, K, M, Net, W, Z, ce, facts, loss, normalized, prepared
from tests.lab.methods.networks import random as drawn
from tests.test_package import loaded_by
from tstar import TstarError
from tstar.lab import methods
from tstar.lab.methods import rules
from tstar.lab.methods.closed_forms import UnitHead

COSINES = H @ W.T / np.outer(np.linalg.norm(H, axis=1), np.linalg.norm(W, axis=1))


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
    h, w = F.normalize(drawn(5, M)) * math.sqrt(M), F.normalize(drawn(3, M)) / math.sqrt(3)
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
    ("name", "logits"),
    [
        ("default", Z),
        ("fixed:temperature=3.0", Z / 3),
        ("sqrt-m", Z / math.sqrt(M)),
        ("adacos-fixed", math.sqrt(2) * math.log(K - 1) * COSINES),
        ("normface-bound", 0.8 * math.log(4 * 0.99 / 0.01) * COSINES),
    ],
)
def test_the_logits_times_a_number(name, logits):
    assert loss(prepared(name)).item() == pytest.approx(ce(logits), rel=1e-6)


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
    z = normalized(H, 0) @ W.T + Net().head.bias.detach().numpy()
    assert loss(prepared(name)).item() == pytest.approx(ce(z / T), rel=1e-12)


def test_ours_with_csg_needs_it():
    with pytest.raises(TstarError, match="csg"):
        methods.get("ours-csgcn").prepare(Net(), facts(csg=None))


@pytest.mark.parametrize(
    ("epoch", "factor", "rate"), [(1, 1, 1.0), (15, 1, 1.0), (16, 4, 0.1), (20, 4, 0.1)]
)
def test_heated_up(epoch, factor, rate):
    recipe = prepared("heated-up")
    assert recipe.on_epoch(epoch, 20) == rate
    rows = W / np.linalg.norm(W, axis=1, keepdims=True)
    logits = 16 / math.sqrt(M) / factor * normalized(H, 0) @ rows.T
    assert loss(recipe).item() == pytest.approx(ce(logits), rel=1e-6)


@pytest.mark.parametrize("kind", ["cosine", "batch"])
def test_the_length_of_the_weights_does_not_matter(kind):
    layer, h = nn.Linear(5, 3, dtype=torch.float64), drawn(8, 5)
    once = UnitHead(layer, 0.5, kind)(h)
    with torch.no_grad():
        layer.weight *= torch.tensor([[2.0], [3.0], [0.1]])
    assert torch.allclose(UnitHead(layer, 0.5, kind)(h), once)
