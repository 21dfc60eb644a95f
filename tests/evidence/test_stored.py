"""The atlas that ships."""

import tstar
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
    found = cases(runs)
    assert {"image", "signal", "text"} <= {case.facts["domain"] for case in found}
    assert all(
        case.curve().temperatures[0] <= 0.5 and case.curve().temperatures[-1] >= 8 for case in found
    )
