"""Runs whose best temperature is known, for tests of what reads runs."""

import math

import pandas as pd

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
