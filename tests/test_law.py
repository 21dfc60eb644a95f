"""The temperature that suits a way of training, against values worked out by hand."""

import math
from pathlib import Path

import pytest

from tstar import Coefficients, TstarError
from tstar.formula import training_aware
from tstar.law import Law
from tstar.training import Training

LAW = Law(sgd=0.5, adam=3.0, power=0.25, minimum=0.5, maximum=32.0)


def test_by_hand():
    how = Training("sgd", 0.1, 1600, 0.9, batch_size=10)
    assert LAW.temperature(90, 10, how) == pytest.approx(0.5 * 3 * 160**0.25)
    assert LAW.temperature(90, 10, Training("adamw", 1e-3, 100)) == 3.0


def test_how_it_scales():
    def T(M=64, K=10, lr=0.01, steps=8000, batch_size=32, momentum=0.9):
        how = Training("sgd", lr, steps, momentum, batch_size=batch_size)
        return LAW.temperature(M, K, how)

    for change in ({"lr": 0.16}, {"M": 1024}):
        assert T(**change) / T() == pytest.approx(4), change
    for change in ({"steps": 128_000}, {"batch_size": 2}):
        assert T(**change) / T() == pytest.approx(2), change
    assert T(K=160) / T() == pytest.approx(0.5)
    assert T(momentum=0.0) / T() == pytest.approx(10**-0.25)
    assert (T(lr=1e-9), T(lr=1e300)) == (0.5, 32.0)


def test_fine_tuning_with_adam_has_a_temperature_of_its_own():
    law = Law(sgd=0.5, adam=3.0, adam_finetune=0.75)
    tuned = Training("adamw", 1e-3, 100, scenario="finetune")
    assert law.temperature(64, 10, tuned) == 0.75
    assert LAW.temperature(64, 10, tuned) == 3.0  # a law without one
    assert Law.from_dict(law.to_dict()) == law


@pytest.mark.parametrize("how", [Training("sgd", 0.1), Training("lion", 0.1, 10)])
def test_a_training_that_the_law_does_not_know(how):
    with pytest.raises(TstarError, match="lr and steps"):
        LAW.temperature(64, 10, how)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ({"sgd": 0.3, "power": 0.25}, "missing .* 'adam'"),
        ({"sgd": 0.3, "adam": -1, "power": 0.25}, "adam of a law must be positive"),
        ({"sgd": 0.3, "adam": 1, "power": 0.25, "adma": 2}, "argument 'adma'"),
        (3, "as Coefficients.save"),
        ({"sgd": 0.28, "adam": 0.026}, "'power'"),
    ],
)
@pytest.mark.parametrize("key", ["law", "budget"])
def test_files_with_a_law(law, message, key):
    with pytest.raises(TstarError, match=message):
        Coefficients.from_dict({"name": "x", "alpha": 1, "beta": 0, key: law})


def test_a_law_in_an_older_file_is_read():
    old = {"sgd": 0.5, "adam": 3.0, "power": 0.25, "minimum": 0.5, "maximum": 32.0}
    old["fitted"] = {"sgd": [1, 320]}
    found = Coefficients.from_dict({"name": "x", "alpha": 1, "beta": 0, "budget": old})
    assert found.law == LAW


def test_c_is_that_of_the_first_atlas():
    """The law's form is given; c alone is fitted, on the runs that ship as the first atlas."""
    pytest.importorskip("scipy")
    from dataclasses import replace

    from research.regret import cases
    from tstar.lab.curves import judge
    from tstar.lab.evidence import atlas

    found = [
        c for c in cases(atlas().query("atlas == 1"), "batch") if c.facts["optimizer"] == "sgd"
    ]
    shipped = training_aware().law
    assert shipped is not None

    def loss(factor):
        law, points = replace(shipped, sgd=factor * shipped.sgd), []
        for case in found:
            f = case.facts
            how = Training("sgd", f["lr"], int(f["steps"]), f["momentum"], int(f["batch_size"]))
            points.append(
                judge(case, law.temperature(f["num_features"], f["num_classes"], how)).regret
            )
        return sum(points) / len(points)

    assert loss(1) < min(loss(0.5), loss(2))
    assert loss(1) < min(loss(factor) for factor in (0.7, 0.8, 0.9, 1.1, 1.25, 1.4)) + 0.15


def test_what_ships_for_fine_tuning_is_what_was_found():
    import pandas as pd

    path = Path(__file__).parents[1] / "results" / "atlas2" / "tuning_temperatures.csv"
    wide = pd.read_csv(path).pivot(index="condition", columns="T", values="val_accuracy")
    behind = wide.rsub(wide[wide.mean().idxmax()], axis=0)
    # within one standard error of the best; of these the T nearest to 1
    level = behind.mean() <= behind.std(ddof=1) / math.sqrt(len(wide))
    law = training_aware().law
    assert law is not None
    assert law.adam_finetune == min(wide.columns[level], key=lambda T: abs(math.log(T)))
