"""A fit as a record: it drops into the formula, and prints its evidence."""

import json
from dataclasses import replace

import pandas as pd
import pytest

import tstar
from tests.lab.fitting.planted import QUICK
from tests.synthetic import planted_runs
from tstar import Coefficients
from tstar.lab.fitting import Fit, fit
from tstar.lab.fitting.search import Solution


def test_the_record_drops_into_the_formula(tmp_path):
    runs = planted_runs(widths=(64, 256, 512)).assign(optimizer="sgd", lr=0.1, epochs=3)
    runs.loc[runs["dataset"] == "task0", "lr"] = 0.05
    result = fit(runs, **QUICK)
    assert isinstance(result, Fit)
    row = result.conditions.iloc[-1]
    facts = (int(row["num_features"]), int(row["num_classes"]), float(row["csg"]))
    assert tstar.temperature(*facts, coefficients=result.coefficients) == pytest.approx(
        row["temperature"]
    )
    result.coefficients.save(tmp_path / "mine.json")
    assert Coefficients.load(tmp_path / "mine.json") == result.coefficients
    origin = result.coefficients.provenance
    assert tuple(origin.fitted["num_features"]) == (64, 512)
    assert tuple(origin.fitted["csg"]) == (1.53, 88.72)
    assert origin.training["optimizer"] == "sgd"
    assert origin.training["lr"] == [0.05, 0.1]
    for word in ("val accuracy", "mean over seeds", "linear in ln T", "chance (1/K)"):
        assert word in origin.source
    notes = tstar.explain(4096, 10, 5.0, coefficients=result.coefficients).notes
    assert any("4096" in note and "512" in note for note in notes)  # outside of what was fitted


def by_hand():
    """A fit of α and β, every number of which was chosen."""
    return Fit(
        coefficients=Coefficients("mine", 0.5, -2.0),
        how="val accuracy, mean over seeds, linear in ln T",
        solution=Solution((0.5, -2.0), 0.0123, True, "chance"),
        accuracy=0.8,
        baselines={"BN, T = 1": 0.05, "the paper's base": 0.02},
        conditions=pd.DataFrame({"dataset": ["a", "b"], "csg": [2.0, float("nan")]}),
        intervals={"alpha": (0.4, 0.6), "beta": (-3.0, -1.0)},
        unidentified=(),
        flags=("look here",),
        runs=20,
        diverged=3,
        left_out=("dataset=c (too few)",),
    )


def test_the_printed_fit_by_hand():
    assert str(by_hand()).splitlines() == [
        "T* = clip(0.5·sqrt(M) - 2, 1, 512)   (mine)",
        "  from 2 conditions, 20 runs (3 diverged, counted as chance), val accuracy, mean over seeds, linear in ln T",
        "  mean regret to the best grid T: 1.23 points  (BN, T = 1: 5.00, the paper's base: 2.00)",
        "  found by: chance",
        "  α =   0.5000   [0.4000, 0.6000]",
        "  β =  -2.0000   [-3.0000, -1.0000]",
        "  intervals: 95 %, from a bootstrap over conditions and seeds",
        "  note: look here",
        "  left out: dataset=c (too few)",
    ]
    assert "intervals" not in str(replace(by_hand(), intervals={}))


def test_what_is_open_has_no_interval():
    lines = str(replace(by_hand(), unidentified=("beta",))).splitlines()
    assert lines[4:6] == ["  α =   0.5000   [0.4000, 0.6000]", "  β =  -2.0000   not identified"]


def test_the_fit_as_plain_types():
    data = json.loads(json.dumps(by_hand().to_dict(), allow_nan=False))
    assert data["conditions"] == [{"dataset": "a", "csg": 2.0}, {"dataset": "b", "csg": None}]
    assert data["intervals"] == {"alpha": [0.4, 0.6], "beta": [-3, -1]}
    assert data["success"] is True
    assert (data["runs"], data["diverged"], data["regret"]) == (20, 3, 0.0123)
    assert by_hand().values == {"alpha": 0.5, "beta": -2.0}
