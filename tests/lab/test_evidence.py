"""The atlas that ships."""

import pandas as pd

from research.regret import cases
from tstar.lab.evidence import atlas


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
    assert done["val_accuracy"].between(0, 1).all()


def test_a_column_tells_the_sources_apart():
    runs = atlas()
    assert set(runs["atlas"]) == {1, 2}
    first = runs[runs["atlas"] == 1]
    assert len(first) == 2049
    found = cases(first)
    assert {"image", "signal", "text"} <= {case.facts["domain"] for case in found}
    ends = [case.curve().temperatures[[0, -1]] for case in found]
    assert all(low <= 0.5 and high >= 8 for low, high in ends)


def test_the_second_atlas_is_the_committed_export():
    store = pd.read_parquet("results/atlas2/store.parquet", columns=["key", "status"])
    finished = store[store["status"].isin(("done", "diverged"))]
    runs = atlas()
    assert set(runs.loc[runs["atlas"] == 2, "key"]) == set(finished["key"])
