"""Exponents and cliffs on curves whose answers are known."""

import math

import pandas as pd
import pytest

from research.laws.exponents import shared_exponent, too_hot
from tstar.errors import TstarError
from tstar.evidence import cases

GRID = (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 256)


def curve(T, best, height=0.8, width=2.0, cliff=None):
    """A parabola in ln T around ``best``; zero beyond the cliff."""
    value = height - 0.05 * (math.log(T / best) / width) ** 2
    return 0.1 if cliff is not None and cliff < T else max(value, 0.1)


def frame(best, datasets=("a", "b"), widths=(64,), seeds=2, val=None, **facts):
    """Runs whose best T is ``best(dataset, M)``."""
    rows = []
    for dataset in datasets:
        for M in widths:
            for T in GRID:
                for seed in range(seeds):
                    accuracy = curve(T, best(dataset, M))
                    rows.append(
                        dict(
                            dataset=dataset, domain="image", num_classes=10, csg=2.0, model="m",
                            num_features=M, norm="batch", method="fixed", temperature=T,
                            optimizer="sgd", lr=0.1, steps=800, epochs=13, seed=seed,
                            test_accuracy=accuracy, status="done", scenario="scratch",
                            val_accuracy=accuracy if val is None else val(T, seed),
                        )
                        | facts
                    )  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize("b", [0.0, 0.5, 1.0])
def test_the_exponent_of_a_power_law_is_found(b):
    runs = frame(lambda d, M: (1.0 if d == "a" else 3.0) * (M / 64) ** b * 2, widths=(32, 64, 256))
    found = shared_exponent([c.curve() for c in cases(runs)], "num_features")
    assert found.value == pytest.approx(b, abs=0.1)
    assert found.groups == 2
    assert found.low <= found.value <= found.high


def test_groups_differ_in_the_variable_alone():
    runs = frame(lambda d, M: 4.0, datasets=("a",), widths=(64, 128))
    with pytest.raises(TstarError, match="'lr' alone"):
        shared_exponent([c.curve() for c in cases(runs)], "lr")


def test_too_hot_is_half_way_down_to_chance():
    runs = frame(lambda d, M: 4.0, datasets=("a",))
    runs["test_accuracy"] = [0.9 if T <= 16 else 0.1 for T in runs.temperature]
    assert too_hot(cases(runs)[0].curve()) == pytest.approx(math.sqrt(16 * 32))
    runs["test_accuracy"] = 0.9
    assert too_hot(cases(runs)[0].curve()) is None
