"""The constant of the law: what the script fits is what ships."""

import pandas as pd
import pytest

from research import walk
from research.atlas import grid
from research.regret import cases
from tstar.formula import temperature, training_aware
from tstar.lab.evidence import atlas


@pytest.fixture(scope="module")
def found():
    every = [grid(case) for case in cases(atlas().query("atlas == 1"), "batch")]
    return [case for case in every if case.facts["optimizer"] == "sgd"]


def test_the_form_is_the_law_that_ships(found):
    c = training_aware().law.sgd
    for case in found[:20]:
        f = case.facts
        T = temperature(f["num_features"], f["num_classes"], optimizer="sgd", lr=f["lr"], steps=f["steps"],
                        momentum=f["momentum"], batch_size=f["batch_size"])  # fmt: skip
        assert pytest.approx(c * walk.without_c(case), rel=1e-6) == T


def test_c_that_ships_is_within_the_interval_and_a_tenth_of_a_point():
    c = training_aware().law.sgd
    for _, row in pd.read_csv(walk.FILE).iterrows():
        assert row["low"] < c < row["high"]
        assert row["level_low"] < c < row["level_high"]


def test_a_planted_c_is_found(found, monkeypatch):
    """Accuracy that peaks at 0.8 times the rest of the law, in every condition."""

    def planted(cases):
        return -((walk.np.log(walk.CANDIDATES / 0.8)) ** 2)[None, :].repeat(len(cases), axis=0)

    monkeypatch.setattr(walk, "accuracies", planted)
    assert walk.fitted(found)["c"] == pytest.approx(0.8, rel=0.01)
