"""Directions in which the fit is flat."""

import numpy as np

from research.synthetic import planted_runs
from tests.fitting.planted import QUICK, WIDTHS
from tstar.curves import grids, lines
from tstar.fitting import fit
from tstar.fitting.model import problem


def test_flat_directions_cost_less_than_the_tolerance():
    runs = planted_runs("base", widths=WIDTHS)
    result = fit(runs, "none", **QUICK)
    found = grids(runs, metric="val")
    task = problem(found, lines(found, "val"), "none")
    flattest, steepest = result.flat
    for flat in result.flat:
        for end in (flat.low, flat.high):
            assert task.loss(np.array(end)) <= result.regret + 1e-3 + 1e-12
    # α and β trade off: along the flattest line they move in opposite ways.
    alpha, beta = flattest.direction
    assert alpha * beta < 0
    span = [abs(f.high[1] - f.low[1]) for f in (flattest, steepest)]
    assert span[0] > span[1]


def test_coefficients_that_cannot_be_told_apart_have_no_interval():
    """Accuracy does not depend on T: any coefficients are as good."""
    runs = planted_runs("base", seeds=2).assign(val_accuracy=0.8)
    result = fit(runs, "none", bootstrap=5, restarts=1)
    assert result.unidentified == ("alpha", "beta")
    text = str(result)
    assert "α and β cannot be told apart" in text
    assert text.count("no interval") == 2
    assert "over conditions" not in text
    assert result.to_dict()["unidentified"] == ["alpha", "beta"]
    for interval in result.intervals:
        for name, (low, high) in interval.ranges.items():
            assert low <= result.values[name] <= high


def test_a_fit_that_is_sure_names_no_valley():
    result = fit(planted_runs("base", widths=WIDTHS), "none", **QUICK)
    assert result.unidentified == ()
    assert "flat valley" not in str(result)
