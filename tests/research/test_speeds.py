"""The tables of the speeds, on runs whose answer is known."""

import math

import pandas as pd
import pytest

from research import speeds

FACTS = {
    "part": "core", "model": "mlp", "dataset": "digits", "optimizer": "sgd", "batch_size": 64, "momentum": 0.9,
    "num_features": 64, "steps": 400, "train_samples": 2500, "label_noise": 0.0, "augment": True,
}  # fmt: skip


def run(recipe, lr, T, val, test, seed=0, decay=5e-4, **facts):
    numbers = {"train_accuracy": 1.0, "nll": 1.0, "ece": 0.1}
    return {**FACTS, **facts, **numbers, "recipe": recipe, "lr": lr, "weight_decay": decay,
            "temperature": T, "val_accuracy": val, "test_accuracy": test, "seed": seed}  # fmt: skip


def test_validation_chooses_and_test_scores():
    runs = [
        run("plain", 0.1, 1, val=50, test=50),
        run("plain", 0.3, 1, val=60, test=55),  # the best rate of plain
        run("BN, T", 0.1, 4, val=58, test=57),
        run("BN, T", 0.3, 4, val=61, test=54),  # chosen, though T = 8 tests better
        run("BN, T", 0.3, 8, val=59, test=70),
    ]
    found = speeds.gains(pd.DataFrame(runs)).set_index("point")["gain"]
    assert found["usual rate and decay"] == pytest.approx(57 - 50)
    assert found["plain's best rate"] == pytest.approx(54 - 55)
    assert found["each at its own best"] == pytest.approx(54 - 55)


def test_both_sides_are_means_over_the_same_seeds():
    runs = [
        *[run("plain", 0.1, 1, 50, 50 + 10 * s, seed=s) for s in (0, 1)],
        run("BN, T", 0.1, 4, 51, 52, seed=0),  # one seed: compared with that seed of plain
        *[run("T", 0.1, 4, 51, 56, seed=s) for s in (0, 1)],
    ]
    found = speeds.gains(pd.DataFrame(runs))
    usual = found[found["point"] == "usual rate and decay"].set_index("recipe")
    assert usual.loc["BN, T", "gain"] == pytest.approx(52 - 50)
    assert usual.loc["T", "gain"] == pytest.approx(56 - 55)
    assert usual["seeds"].to_dict() == {"BN, T": 1, "T": 2}


def test_the_chosen_are_compared_over_every_seed_that_both_have():
    runs = [
        *[run("plain", 0.1, 1, 50, 50 + 10 * s, seed=s) for s in (0, 1)],
        *[run("BN, T", 0.1, 4, 51, 52 + 2 * s, seed=s) for s in (0, 1)],
        run("BN, T", 0.1, 8, 40, 60),  # one seed only, which does not keep the second of T = 4 out
    ]
    usual = speeds.gains(pd.DataFrame(runs)).iloc[0]
    assert usual["gain"] == pytest.approx((52 + 54) / 2 - (50 + 60) / 2)
    assert usual["seeds"] == 2


def test_noise_is_the_deviation_between_seeds():
    runs = [run("plain", lr, 1, 50, 50 + s, seed=s) for lr in (0.1, 0.3) for s in (0, 2)]
    assert speeds.noise(pd.DataFrame(runs)) == pytest.approx(math.sqrt(2))


def test_sensitivity_is_the_loss_beside_the_best_rate():
    values = {0.03: 40.0, 0.1: 50.0, 0.3: 47.0, 1.0: 20.0}
    runs = [run("plain", lr, 1, test, test) for lr, test in values.items()]
    found = speeds.sensitivity(pd.DataFrame(runs)).set_index("off")["loss"]
    assert found.to_dict() == {0.32: 10.0, 3.16: 3.0, 10.0: 30.0}


def test_the_walk_of_a_temperature_and_what_it_costs():
    tests = {1: 50.0, 4: 52.0, 16: 45.0}
    runs = [run("BN, T", 0.1, T, test, test, num_classes=10) for T, test in tests.items()]
    found = speeds.walk(pd.DataFrame(runs)).set_index("T")
    assert found["lost"].to_dict() == {1: 2.0, 4: 0.0, 16: 7.0}
    assert found.loc[4, "walk"] == pytest.approx(0.1 * 400 * 64 / (4**2 * 10))


def test_intervals_hold_their_mean_and_need_two():
    low, high = speeds.interval(pd.Series([1.0, 2.0, 3.0]))
    # Student's t with two degrees of freedom: 4.303·1/sqrt(3).
    assert (low, high) == pytest.approx((2 - 2.484, 2 + 2.484), abs=1e-3)
    assert math.isnan(speeds.interval(pd.Series([1.0]))[0])
