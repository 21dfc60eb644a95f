"""Intervals of coefficients, against the plain way of computing them."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from tests.lab.fitting.planted import QUICK, WIDTHS, curve, tent
from tests.synthetic import planted_runs, powers_of_two
from tstar import Coefficients, TstarError
from tstar.lab.curves import grids, lines
from tstar.lab.curves.resampling import redrawn
from tstar.lab.fitting import How, fit
from tstar.lab.fitting.intervals import directions, intervals, walk
from tstar.lab.fitting.model import BOUNDS, problem
from tstar.lab.fitting.search import refit, solve

PEAK = np.array([2.0, 3.0])  # T = 11
BETA = np.array([0.0, 1.0])


def interval_of(runs, *, variant="base", level=0.95, replicates=40, seed=0):
    """The interval of each coefficient, and the fit."""
    how = How()
    found, _ = how.usable(runs)
    pose = partial(how.posed, variant=variant, check=False)
    theta = np.array(solve(pose(found), restarts=1).theta)
    options = dict(replicates=replicates, seed=seed, level=level)
    return intervals(found, pose, theta, **options), theta


@pytest.mark.parametrize(("level", "least", "most"), [(0.5, 0.5, 0.95), (0.95, 0.9, 1.0)])
def test_intervals_cover_at_about_their_level(level, least, most):
    """Fifteen draws of the noise; to be covered is what a fit without noise finds.

    Conditions differ by noise alone here, which both steps of the bootstrap count: the intervals are
    a little wider than they need be.
    """
    planted = Coefficients("planted", 0.6, 1.0)
    few = dict(grid=powers_of_two(4, 64), tasks=((1.5, 10), (7.0, 10), (25.0, 100)))
    truth = solve(How().posed(How().usable(planted_runs(planted, **few))[0], "base")).theta
    inside = []
    for draw in range(15):
        runs = planted_runs(planted, **few, seeds=3, noise=0.01, seed=draw)
        spans, theta = interval_of(runs, level=level, replicates=25, seed=draw)
        for (low, high), value, estimate in zip(spans.values(), truth, theta, strict=True):
            assert low <= estimate <= high
            inside.append(low <= value <= high)
    assert least <= np.mean(inside) <= most


def test_seeds_that_disagree_make_an_interval_of_conditions_that_agree():
    """Every condition has the same three seeds: conditions drawn again change nothing, seeds do."""
    runs = planted_runs(
        Coefficients("planted", 0.0, 4.0), tasks=((2.0, 10),), grid=[1, 2, 4, 8, 16]
    )
    peaks = (2.0, 4.0, 8.0)
    three = [
        runs.assign(seed=i, val_accuracy=0.9 - 0.05 * np.abs(np.log(runs["temperature"] / peak)))
        for i, peak in enumerate(peaks)
    ]
    alone, _ = interval_of(runs)
    assert alone["beta"] == pytest.approx((4.0, 4.0), abs=1e-6)
    spans, theta = interval_of(pd.concat(three))
    assert theta == pytest.approx([0.0, 4.0])
    assert spans["beta"][0] <= 2.0 + 1e-9
    assert spans["beta"][1] >= 8.0 - 1e-9


def test_refits_are_as_good_as_a_long_search(task, found):
    theta, rng = np.array(solve(task, restarts=1).theta), np.random.default_rng(1)
    for _ in range(3):
        drawn = redrawn(found, rng)
        again = problem(drawn, lines(drawn, "val"), "csgcn")
        wanted = solve(again, restarts=1).regret
        assert float(again.loss(refit(again, theta, rng))) <= wanted + 2e-4


def test_runs_that_cannot_tell_the_coefficients_apart_are_drawn_again():
    """Two conditions, two coefficients: each draw must have both."""
    made = [curve([0.5, 0.9, 0.5], num_features=M) for M in (16, 64)]

    def pose(drawn):
        return problem(drawn, lines(drawn, "val"), "base", check=False)

    spans = intervals(made, pose, np.array([0.0, 11.0]), replicates=20, seed=0)
    assert spans["beta"] == pytest.approx((11.0, 11.0))
    # One condition cannot tell α from β, however often it is drawn.
    with pytest.raises(TstarError, match="needs more conditions than 1 to tell 2 coefficients"):
        intervals(made[:1], pose, np.array([0.0, 11.0]), replicates=2, seed=0)


def test_an_interval_is_reproducible_and_stays_in_the_box():
    runs = planted_runs("cn", grid=powers_of_two(1, 64), widths=(64, 512), seeds=2, noise=0.01)
    options = dict(variant="cn", replicates=4, level=0.8)
    spans, theta = interval_of(runs, seed=4, **options)
    assert spans == interval_of(runs, seed=4, **options)[0]
    assert spans != interval_of(runs, seed=5, **options)[0]
    bounds = (BOUNDS[name] for name in spans)
    for (low, high), value, (least, most) in zip(spans.values(), theta, bounds, strict=True):
        assert least <= low <= value <= high <= most
    with pytest.raises(TstarError, match="a whole number of at least 2, got bootstrap=1"):
        interval_of(runs, replicates=1)


def test_flat_directions_cost_less_than_the_tolerance():
    runs = planted_runs("base", widths=WIDTHS)
    result = fit(runs, "base", **QUICK)
    found = grids(runs, metric="val")
    task = problem(found, lines(found, "val"), "base")
    flattest, steepest = result.flat
    for flat in result.flat:
        for end in (flat.low, flat.high):
            assert task.loss(np.array(end)) <= result.regret + 1e-3 + 1e-12
    # α and β trade off: along the flattest line they move in opposite ways.
    alpha, beta = np.subtract(flattest.high, flattest.low)
    assert alpha * beta < 0
    span = [abs(f.high[1] - f.low[1]) for f in (flattest, steepest)]
    assert span[0] > span[1]
    assert result.unidentified == ()
    assert "flat valley" not in str(result)


def test_coefficients_that_cannot_be_told_apart_have_no_interval():
    """Accuracy does not depend on T: any coefficients are as good."""
    runs = planted_runs("base", seeds=2).assign(val_accuracy=0.8)
    result = fit(runs, "base", bootstrap=5, restarts=1)
    assert result.unidentified == ("alpha", "beta")
    text = str(result)
    assert "flat valley" in text
    assert text.count("not identified") == 2
    assert "bootstrap" not in text
    assert result.to_dict()["unidentified"] == ["alpha", "beta"]
    for name, (low, high) in result.intervals.items():
        assert low <= result.values[name] <= high


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_walk_ends_where_the_tolerance_is_lost(sign):
    """0.04 of accuracy is lost where T has moved by 1: β from 2 to 4."""
    flat = walk(tent(), PEAK, sign * BETA, 0.04)
    assert flat.low == pytest.approx((2.0, 2.0), rel=0.01)
    assert flat.high == pytest.approx((2.0, 4.0), rel=0.01)
    assert flat.low[1] >= 2.0 - 1e-9
    assert flat.high[1] <= 4.0 + 1e-9
    assert not flat.open_ended
    assert flat.unidentified == ()


def test_a_walk_that_costs_nothing_ends_at_the_bounds():
    flat = walk(tent(), PEAK, BETA, 1.0)
    assert (flat.low, flat.high) == ((2.0, -100.0), (2.0, 100.0))
    assert flat.open_ended
    assert flat.unidentified == ("beta",)


def test_a_fit_on_the_bound_has_not_walked_there():
    flat = walk(tent(), np.array([10.0, -29.0]), np.array([1.0, 0.0]), 0.04)
    assert not flat.open_ended
    assert flat.high == (10.0, -29.0)
    assert flat.low == pytest.approx((9.75, -29.0), rel=0.01)  # T = 4α + β falls by 1


def test_the_flattest_direction_leaves_every_temperature_alone():
    flattest, steepest = directions(tent())
    assert abs(flattest @ np.array([4.0, 1.0])) < 1e-9  # T = 4α + β
    assert abs(steepest @ np.array([4.0, 1.0])) == pytest.approx(17**0.5)
