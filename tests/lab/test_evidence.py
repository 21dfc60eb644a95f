"""The atlas that ships."""

import pandas as pd
import pytest

from research.regret import cases
from tstar.lab.evidence import FILES, atlas


def test_the_atlas_that_ships_has_what_an_analysis_needs():
    runs = atlas()
    wanted = (
        *("dataset", "domain", "model", "num_features", "num_classes", "csg", "norm", "method"),
        *("temperature", "optimizer", "lr", "weight_decay", "epochs", "steps", "scenario", "seed"),
        *("val_accuracy", "test_accuracy", "status"),
    )
    assert set(wanted) <= set(runs.columns)
    assert runs["key"].is_unique
    assert runs["status"].isin(("done", "diverged")).all()
    done = runs[runs["status"] == "done"]
    assert done["test_accuracy"].between(0, 1).all()
    held_out = done[done["val_fraction"] > 0]
    assert held_out["val_accuracy"].between(0, 1).all()


def test_a_column_tells_the_sources_apart():
    runs = atlas()
    assert set(runs["atlas"]) == {*FILES}
    first = runs[runs["atlas"] == 1]
    assert len(first) == 2049
    found = cases(first)
    assert {"image", "signal", "text"} <= {case.facts["domain"] for case in found}
    ends = [case.curve().temperatures[[0, -1]] for case in found]
    assert all(low <= 0.5 and high >= 8 for low, high in ends)


@pytest.mark.parametrize("number", [number for number in FILES if number > 1])
def test_a_source_is_the_committed_export(number):
    folder = FILES[number].removesuffix(".parquet")
    store = pd.read_parquet(f"results/{folder}/store.parquet", columns=["key", "status"])
    finished = store[store["status"].isin(("done", "diverged"))]
    runs = atlas()
    assert set(runs.loc[runs["atlas"] == number, "key"]) == set(finished["key"])
