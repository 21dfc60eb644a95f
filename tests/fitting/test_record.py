"""A fit as a record: it drops into the formula, and prints its evidence."""

import json

import pytest

import tstar
from research.synthetic import planted_runs
from tests.fitting.planted import QUICK
from tstar import Coefficients
from tstar.fitting import Fit, fit


def test_the_record_drops_into_the_formula(tmp_path):
    runs = planted_runs(widths=(64, 256, 512)).assign(optimizer="sgd", lr=0.1, epochs=3)
    runs.loc[runs["dataset"] == "task0", "lr"] = 0.05
    result = fit(runs, name="mine", **QUICK)
    assert isinstance(result, Fit)
    row = result.conditions.iloc[-1]
    facts = (int(row["num_features"]), int(row["num_classes"]), float(row["csg"]))
    assert tstar.temperature(*facts, coefficients=result.coefficients) == pytest.approx(
        row["temperature"]
    )
    result.save(tmp_path / "mine.json")
    assert Coefficients.load(tmp_path / "mine.json") == result.coefficients
    origin = result.coefficients.provenance
    assert origin.fitted.num_features == (64, 512)
    assert origin.fitted.csg == (1.53, 88.72)
    assert origin.training["optimizer"] == "sgd"
    assert origin.training["lr"] == [0.05, 0.1]
    for word in (
        "val accuracy",
        "mean over seeds",
        "linear interpolation in ln T",
        "restarts converged",
        "chance (1/K)",
    ):
        assert word in origin.source
    flags = tstar.explain(4096, 10, 5.0, coefficients=result.coefficients).flags
    assert [flag.quantity for flag in flags] == ["num_features"]


def test_printing_and_json_hold_the_evidence():
    result = fit(planted_runs(seeds=2, noise=0.01), bootstrap=3, restarts=2)
    text = str(result)
    for word in (
        "24 conditions",
        "mean regret",
        "restarts converged",
        "over seeds",
        "over conditions",
        "flattest",
    ):
        assert word in text
    data = json.loads(json.dumps(result.to_dict()))
    assert data["coefficients"]["alpha"] == result.coefficients.alpha
    assert len(data["conditions"]) == 24
    assert len(data["restarts"]) == 2
