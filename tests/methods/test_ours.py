"""The paper's method: BatchNorm and T* from the closed form, constant or on a schedule."""

import math

import numpy as np
import pytest

import tstar
from tests.methods.networks import (
    CLASSES,
    WIDTH,
    K,
    M,
    Net,
    X,
    Y,
    ce,
    loss_of,
    net,
    usual,
)
from tstar import TstarError, methods


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
    value, *_ = loss_of(name)
    net = Net()
    h = net.features(X).detach().numpy()
    h = (h - h.mean(0)) / np.sqrt(h.var(0) + 1e-5)
    z = h @ net.head.weight.detach().numpy().T + net.head.bias.detach().numpy()
    assert value == pytest.approx(ce(z / T, Y), rel=1e-12)


def test_a_step_of_a_schedule_reaches_the_heads_of_ours():
    for kind in ("linear", "cosine", "warmup", "step"):
        recipe = methods.get("ours-cn", schedule=kind).prepare(net(), usual())
        target = tstar.temperature(WIDTH, CLASSES, variant="cn")
        seen = []
        for epoch in range(1, 9):
            assert recipe.on_epoch(epoch, 8) == 1.0
            seen.append(float(recipe.model[3].temperature))
        assert seen[0] == pytest.approx(target / 4 if kind == "step" else 1.0)
        assert seen[-1] == pytest.approx(target, rel=1e-6)
        assert seen == sorted(seen)
        assert np.ptp(seen) > 1
    assert methods.get("ours-cn").prepare(net(), usual()).on_epoch is None


def test_the_shapes_of_ours_over_twenty_epochs():
    """From 1 to T over epochs 1–20, or by epoch 5; or T/4 to epoch 15 and T from 16 on."""
    T = tstar.temperature(WIDTH, CLASSES, variant="cn")

    def over(kind: str) -> list[float]:
        recipe = methods.get("ours-cn", schedule=kind).prepare(net(), usual(epochs=20))
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
        methods.get("ours-csgcn").prepare(net(), usual(csg=None))
