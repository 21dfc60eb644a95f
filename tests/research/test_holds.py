"""Does the paper hold? The regime's numbers recover what was planted in its runs."""

import math

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")
from research import holds

TEMPERATURES = (1, 2, 4, 8, 16, 32)
ARM = {"model": "vgg9", "status": "done", "amp": 1, "lr": 0.1, "weight_decay": 5e-4}


def planted(exponent, noise=0.0):
    """Runs whose best T is M ** exponent; plain has 60 %, three times its decay 61 %."""
    random = np.random.default_rng(0)
    for M in (32, 64, 128):
        for seed in range(3):
            for T in TEMPERATURES:
                miss = math.log(T) - exponent * math.log(M)
                score = 0.65 - 0.005 * miss**2 + noise * random.normal()
                yield ARM | {"norm": "batch", "temperature": T, "test_accuracy": score} | {
                    "num_features": M, "seed": seed}  # fmt: skip
            plain = {"norm": "none", "temperature": 1, "num_features": M, "seed": seed}
            yield ARM | plain | {"test_accuracy": 0.60}
            yield ARM | plain | {"test_accuracy": 0.61, "weight_decay": 1.5e-3}
            yield ARM | plain | {"test_accuracy": 0.10, "amp": 0}  # of another precision


@pytest.mark.parametrize("exponent", [0.3, 0.5])
def test_the_exponent_of_the_best_temperature_is_recovered(tmp_path, monkeypatch, exponent):
    monkeypatch.setattr(holds, "REGIME", tmp_path / "store.parquet")
    pd.DataFrame(planted(exponent)).to_parquet(holds.REGIME)
    assert f"M^{exponent:.2f} ({exponent:.2f} to {exponent:.2f})" in holds.regime_exponent()
    pd.DataFrame(planted(exponent, noise=0.003)).to_parquet(holds.REGIME)
    low, high = holds.regime_exponent().split("(")[-1].rstrip(")").split(" to ")
    assert float(low) < float(high)


def test_a_flat_curve_tells_no_exponent_and_a_peak_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(holds, "REGIME", tmp_path / "store.parquet")
    pd.DataFrame(planted(0.3, noise=0.001)).to_parquet(holds.REGIME)
    assert holds.regime_noise().count("(p = 0.00)") == 3
    rising = pd.DataFrame(planted(2.0))  # far above what was run
    rising.to_parquet(holds.REGIME)
    assert "no exponent" in holds.regime_exponent()
    noise = np.random.default_rng(0).normal(0, 0.01, len(rising))
    rising.assign(test_accuracy=0.6 + noise).to_parquet(holds.REGIME)
    assert "(p = 0.00)" not in holds.regime_noise()


def test_arms_are_compared_on_the_same_seeds_and_in_one_precision(tmp_path, monkeypatch):
    monkeypatch.setattr(holds, "REGIME", tmp_path / "store.parquet")
    pd.DataFrame(planted(0.4)).to_parquet(holds.REGIME)
    first = holds.regime_table().splitlines()[2]
    assert "| 60.0 ± 0.0 | 61.0 ± 0.0 | – |" in first
    # The nearest to cn's 4.4 is 4.
    gain = 100 * (0.65 - 0.005 * (math.log(4) - 0.4 * math.log(32)) ** 2) - 60
    assert f"| {gain:+.1f} ± 0.0 (T = 4) | {gain - 1:+.1f} ± 0.0 |" in holds.differences()


def test_a_gain_is_of_the_seeds_that_both_sides_have():
    facts = dict.fromkeys(holds.FACTS, 0) | {"num_features": 64, "num_classes": 10, "csg": None}
    runs = [("none", 1, 0, 0.3), ("none", 1, 1, 0.6), ("batch", 5, 1, 0.7), ("batch", 99, 0, 0.9)]
    names = ("norm", "temperature", "seed", "test_accuracy")
    rows = pd.DataFrame([facts | dict(zip(names, run, strict=True)) for run in runs])
    assert holds.gains([rows], "cn")["gain"].tolist() == pytest.approx([10.0])  # cn: 5.35
    assert holds.gains([rows], 1.0).empty  # no run with a BatchNorm is near
