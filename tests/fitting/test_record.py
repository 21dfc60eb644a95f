"""A fit as a record: it drops into the formula, and prints its evidence."""

import json
from dataclasses import replace

import pandas as pd
import pytest

import tstar
from research.synthetic import planted_runs
from tests.fitting.planted import QUICK
from tstar import Coefficients
from tstar.fitting import Fit, fit
from tstar.fitting.bootstrap import Interval
from tstar.fitting.flatness import Flat
from tstar.fitting.search import Restart


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


def by_hand():
    """A fit of α and β, every number of which was chosen."""
    names = ("alpha", "beta")
    ranges = {"alpha": (0.4, 0.6), "beta": (-3.0, -1.0)}
    return Fit(
        coefficients=Coefficients("mine", 0.5, -2.0),
        variant="base",
        metric="val",
        average="mean",
        interpolation="lnT",
        regret=0.0123,
        accuracy=0.8,
        baselines={"BN, T = 1": 0.05, "the paper's base": 0.02},
        conditions=pd.DataFrame({"dataset": ["a", "b"], "csg": [2.0, float("nan")]}),
        restarts=(
            Restart((0.5, -2.0), 0.0123, True, "fine", 3, 30),
            Restart((0.4, -2.0), 0.0133, False, "tired", 9, 90),
        ),
        intervals=(Interval("seeds", 0.9, ranges, ((0.4, -3.0), (0.6, -1.0))),),
        flat=(Flat(names, (0.6, -0.8), (0.4, -1.9), (0.6, -2.1), 0.25, False),),
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
        "  optimizer: 1 of 2 restarts converged, regrets within 0.100 points",
        "  α =   0.5000   [0.4000, 0.6000] over seeds",
        "  β =  -2.0000   [-3.0000, -1.0000] over seeds",
        "  intervals: 90 %, from 2 bootstrap refits each, and all that the noise cannot tell apart",
        "  flattest direction (less than 0.1 points lost from end to end):",
        "    alpha 0.4 … 0.6, beta -1.9 … -2.1; T moves by 0.25 on average",
        "  note: look here",
        "  left out: dataset=c (too few)",
    ]
    assert "linear in T\n" in str(replace(by_hand(), interpolation="T"))
    assert "intervals" not in str(replace(by_hand(), intervals=()))


def test_what_is_open_is_printed_as_a_valley():
    names = ("alpha", "beta")
    valley = Flat(names, (0.01, -1.0), (0.4, 2.0), (0.4, -2.0), 0.25, True)
    result = replace(by_hand(), flat=(valley,))
    assert result.unidentified == ("beta",)
    lines = str(result).splitlines()
    assert lines[4:6] == [
        "  α =   0.5000   [0.4000, 0.6000] over seeds",
        "  β =  -2.0000   no interval: see the flat valley",
    ]
    start = lines.index(next(line for line in lines if "flat valley: β cannot" in line))
    assert lines[start + 1].split() == ["α", "β"]
    assert [line.split() for line in lines[start + 2 : start + 7]] == [
        ["0.400", beta] for beta in ("2.000", "1.000", "0.000", "-1.000", "-2.000")
    ]


def test_the_fit_as_plain_types():
    data = json.loads(json.dumps(by_hand().to_dict(), allow_nan=False))
    assert data["conditions"] == [{"dataset": "a", "csg": 2.0}, {"dataset": "b", "csg": None}]
    assert data["intervals"] == [
        {"over": "seeds", "level": 0.9, "ranges": {"alpha": [0.4, 0.6], "beta": [-3, -1]}, "n": 2}
    ]
    assert data["success"] is True
    assert (data["runs"], data["diverged"], data["regret"]) == (20, 3, 0.0123)
    assert [restart["message"] for restart in data["restarts"]] == ["fine", "tired"]
    assert by_hand().values == {"alpha": 0.5, "beta": -2.0}
