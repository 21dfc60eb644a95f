"""Directions in which the fit is flat."""

import numpy as np
import pytest

from research.synthetic import planted_runs
from tests.fitting.planted import QUICK, WIDTHS, tent
from tstar.curves import grids, lines
from tstar.fitting import fit
from tstar.fitting.flatness import directions, walk
from tstar.fitting.model import problem

BOX = np.array([[0.0, 10.0], [-100.0, 100.0]])
PEAK = np.array([2.0, 3.0])  # T = 11
BETA = np.array([0.0, 1.0])


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


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_walk_ends_where_the_tolerance_is_lost(sign):
    """0.04 of accuracy is lost where T has moved by 1: β from 2 to 4."""
    flat = walk(tent(), PEAK, sign * BETA, BOX, 0.04)
    assert flat.direction == (0.0, 1.0)
    assert flat.low == pytest.approx((2.0, 2.0), rel=0.01)
    assert flat.high == pytest.approx((2.0, 4.0), rel=0.01)
    assert flat.low[1] >= 2.0 - 1e-9
    assert flat.high[1] <= 4.0 + 1e-9
    assert flat.temperature_change == pytest.approx(2.0, rel=0.02)
    assert not flat.open_ended
    assert flat.unidentified == ()
    assert str(flat).startswith("alpha 2 … 2, beta 2 … 4; T moves by 2 on average")
    assert "bound" not in str(flat)
    middle = flat.points()[2]
    assert (len(flat.points()), middle) == (5, pytest.approx((2.0, 3.0), rel=0.01))


def test_a_walk_that_costs_nothing_ends_at_the_bounds():
    flat = walk(tent(), PEAK, BETA, BOX, 1.0)
    assert (flat.low, flat.high) == ((2.0, -100.0), (2.0, 100.0))
    assert flat.open_ended
    assert flat.unidentified == ("beta",)
    assert str(flat).endswith("on average (an end is the bound of the search)")


def test_a_fit_on_the_bound_has_not_walked_there():
    flat = walk(tent(), PEAK, BETA, np.array([[0.0, 10.0], [-100.0, 3.0]]), 0.04)
    assert not flat.open_ended
    assert flat.high == (2.0, 3.0)
    assert flat.low == pytest.approx((2.0, 2.0), rel=0.01)


def test_the_flattest_direction_leaves_every_temperature_alone():
    flattest, steepest = directions(tent())
    assert abs(flattest @ np.array([4.0, 1.0])) < 1e-9  # T = 4α + β
    assert abs(steepest @ np.array([4.0, 1.0])) == pytest.approx(17**0.5)
