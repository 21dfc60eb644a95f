"""Longer fine-tunings: what the table says, recomputed from the store's rows."""

import json

import pandas as pd
import pytest

from research import long_runs


@pytest.fixture(scope="module")
def store() -> pd.DataFrame:
    runs = pd.read_parquet(long_runs.FOLDER / "store.parquet")
    return runs[runs["scenario"] == "finetune"]


def test_every_finished_run_is_in_one_row(store):
    named = [key for keys in long_runs.conditions("finetune")["keys"] for key in json.loads(keys)]
    assert sorted(named) == sorted(key[:8] for key in store["key"])


def test_the_best_rate_is_chosen_by_validation_and_scored_by_test(store):
    for _, row in long_runs.conditions("finetune").iterrows():
        mine = store[store["key"].str[:8].isin(json.loads(row["keys"])) & (store["seed"] == 0)]
        plain = mine[mine["norm"] == "none"].sort_values("val_accuracy", ascending=False).iloc[0]
        assert row["lr"] * row["tuned_lr"] == pytest.approx(plain["lr"])
        assert row["tuned"] == pytest.approx(100 * plain["test_accuracy"])


def test_a_recipe_is_compared_at_its_own_rate(store):
    for _, row in long_runs.conditions("finetune").iterrows():
        mine = store[store["key"].str[:8].isin(json.loads(row["keys"])) & (store["seed"] == 0)]
        chosen = mine[
            (mine["norm"] == "batch") & (mine["temperature"] != 1) & (mine["lr"] == row["lr"])
        ]
        assert len(chosen) <= 1
        if len(chosen):
            assert row["bn"] == pytest.approx(100 * chosen["test_accuracy"].iloc[0])
        else:
            assert pd.isna(row["bn"])
