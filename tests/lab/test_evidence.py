"""The atlas that ships."""

from tstar.lab.curves import conditions
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
    found = [each for each in conditions(first) if (each.curve("batch") is not None)]
    found = [each for each in found if len(each.curve("batch").temperatures) >= 5]
    assert {"image", "signal", "text"} <= {each.facts["domain"] for each in found}
    ends = [each.curve("batch").temperatures[[0, -1]] for each in found]
    assert all(low <= 0.5 and high >= 8 for low, high in ends)
