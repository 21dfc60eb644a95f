"""The gain over the plain model: the table's numbers against a few lines of pandas on the raw runs."""

import pytest

pytest.importorskip("pandas")


from tstar.lab import atlas


def test_bn_at_one_is_the_paired_difference_of_the_raw_runs():
    import pandas as pd

    table = pd.read_csv("results/atlas/gain.csv")
    mine = table[
        (table["rule"] == "BN, T = 1")
        & (table["dataset"] == "banking77")
        & (table["model"] == "mlp")
    ]
    runs = atlas().query("atlas == 1")
    runs = runs[(runs["dataset"] == "banking77") & (runs["model"] == "mlp") & (runs["temperature"] == 1)
                & (runs["lr"] == 0.1) & (runs["steps"] == 800) & (runs["optimizer"] == "sgd")
                & (runs["method"] == "fixed")]  # fmt: skip
    wide = runs.pivot_table(
        index=["num_features", "seed"], columns="norm", values="test_accuracy"
    ).dropna()
    expected = 100 * (wide["batch"] - wide["none"]).groupby("num_features").mean()
    for _, row in mine.iterrows():
        assert row["gain"] == pytest.approx(expected[row["num_features"]], abs=0.01)
