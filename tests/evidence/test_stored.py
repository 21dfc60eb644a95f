"""The atlas that ships."""

import pytest

import tstar
from tstar import TstarError
from tstar.evidence import cases


def test_the_atlas_that_ships_has_what_an_analysis_needs():
    runs = tstar.atlas()
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
    assert set(runs["atlas"]) == {1, 2}
    first, second = tstar.atlas(1), tstar.atlas(2)
    assert len(first) + len(second) == len(runs)
    assert len(first) == 2049
    found = cases(first)
    assert {"image", "signal", "text"} <= {case.facts["domain"] for case in found}
    assert all(
        case.curve().temperatures[0] <= 0.5 and case.curve().temperatures[-1] >= 8 for case in found
    )


def test_the_second_atlas_is_the_committed_export():
    import pandas as pd

    store = pd.read_parquet("results/atlas2/store.parquet", columns=["key", "status"])
    finished = store[store["status"].isin(("done", "diverged"))]
    assert set(tstar.atlas(2)["key"]) == set(finished["key"])


def test_there_are_two():
    with pytest.raises(TstarError, match="from 1 to 2, got which=3"):
        tstar.atlas(3)


@pytest.mark.parametrize("which", [True, "1", 3, 1.5, float("nan")])
def test_there_are_two_atlases(which):
    with pytest.raises(TstarError, match="which must be"):
        tstar.atlas(which)
