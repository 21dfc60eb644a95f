"""Intervals of coefficients, against the plain way of computing them."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import differential_evolution

from tests.lab.fitting.planted import QUICK, WIDTHS, tent
from tests.synthetic import planted_runs, powers_of_two
from tstar import TstarError
from tstar.formula import get
from tstar.lab.curves import grids, lines
from tstar.lab.fitting import fit
from tstar.lab.fitting import intervals as bootstrap
from tstar.lab.fitting.model import problem
from tstar.lab.fitting.search import solve

PEAK = np.array([2.0, 3.0])  # T = 11
BETA = np.array([0.0, 1.0])


@pytest.mark.parametrize("variant", ["base", pytest.param("csgcn", marks=pytest.mark.slow)])
def test_planted_coefficients_lie_in_the_intervals_with_noise(variant):
    """95 % intervals over three draws of the noise: at most one coefficient in six outside."""
    planted, inside = get(variant), []
    for draw in range(3):
        runs = planted_runs(
            variant, grid=powers_of_two(8, 64), widths=WIDTHS, seeds=4, noise=0.02, seed=draw
        )
        for name, (low, high) in fit(runs, variant, restarts=1, bootstrap=40).intervals.items():
            assert low < high
            inside.append(low <= getattr(planted, name) <= high)
    assert np.mean(inside) >= 5 / 6


def test_batched_refits_are_as_good_as_scipy_s(task):
    theta = np.array(solve(task, restarts=1).theta)
    rng = np.random.default_rng(1)
    weights = np.stack([bootstrap._weights(task, rng) for _ in range(3)])
    refits = bootstrap._refit(task, weights, theta, rng)
    options = {"vectorized": True, "updating": "deferred", "tol": 1e-6, "seed": 2}
    for shares, refit in zip(weights, refits, strict=True):

        def loss(candidates, shares=shares):
            return task.regret(candidates.T) @ shares

        wanted = differential_evolution(loss, task.bounds.T, polish=False, **options).fun
        assert float(loss(refit)) <= wanted + 1e-6


def test_a_draw_that_cannot_tell_the_coefficients_apart_is_drawn_again():
    """Two conditions, two coefficients: each draw must have both."""
    task = SimpleNamespace(design=np.array([[1.0, 2.0], [1.0, 5.0]]))
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert (bootstrap._weights(task, rng) == 0.5).all()
    tiny = SimpleNamespace(design=task.design * np.array([1.0, 1e-7]))  # the unit does not matter
    assert (bootstrap._weights(tiny, rng) == 0.5).all()
    # One condition cannot tell α from β, however often it is drawn.
    with pytest.raises(TstarError, match="needs more conditions than 1 to tell 2 coefficients"):
        bootstrap._weights(tent(), rng)


def test_an_interval_is_reproducible_and_stays_in_the_box(task):
    theta = np.array(solve(task, restarts=1).theta)
    options = dict(replicates=6, seed=4, level=0.8)
    made = bootstrap.intervals(task, theta, **options)
    assert made == bootstrap.intervals(task, theta, **options)
    assert made != bootstrap.intervals(task, theta, **(options | {"seed": 5}))
    for (low, high), value, least, most in zip(made.values(), theta, *task.bounds, strict=True):
        assert least <= low <= value <= high <= most
    with pytest.raises(TstarError, match="a whole number of at least 2, got bootstrap=1"):
        bootstrap.intervals(task, theta, replicates=1, seed=0)


def test_the_loss_of_a_replicate_is_its_mean_regret():
    """T = 11 and 13: 0 and 0.08, with the condition's whole weight and with half of it."""
    candidates = np.array([[[2.0, 3.0], [2.0, 5.0]]] * 2)
    got = bootstrap._loss(tent(), np.array([[1.0], [0.5]]), candidates)
    np.testing.assert_allclose(got, [[0, 0.08], [0, 0.04]], atol=1e-12)


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
    alpha, beta = np.subtract(flattest.high, flattest.low)
    assert alpha * beta < 0
    span = [abs(f.high[1] - f.low[1]) for f in (flattest, steepest)]
    assert span[0] > span[1]
    assert result.unidentified == ()
    assert "flat valley" not in str(result)


def test_coefficients_that_cannot_be_told_apart_have_no_interval():
    """Accuracy does not depend on T: any coefficients are as good."""
    runs = planted_runs("base", seeds=2).assign(val_accuracy=0.8)
    result = fit(runs, "none", bootstrap=5, restarts=1)
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
    flat = bootstrap.walk(tent(), PEAK, sign * BETA, 0.04)
    assert flat.low == pytest.approx((2.0, 2.0), rel=0.01)
    assert flat.high == pytest.approx((2.0, 4.0), rel=0.01)
    assert flat.low[1] >= 2.0 - 1e-9
    assert flat.high[1] <= 4.0 + 1e-9
    assert not flat.open_ended
    assert flat.unidentified == ()


def test_a_walk_that_costs_nothing_ends_at_the_bounds():
    flat = bootstrap.walk(tent(), PEAK, BETA, 1.0)
    assert (flat.low, flat.high) == ((2.0, -100.0), (2.0, 100.0))
    assert flat.open_ended
    assert flat.unidentified == ("beta",)


def test_a_fit_on_the_bound_has_not_walked_there():
    flat = bootstrap.walk(tent(), np.array([10.0, -29.0]), np.array([1.0, 0.0]), 0.04)
    assert not flat.open_ended
    assert flat.high == (10.0, -29.0)
    assert flat.low == pytest.approx((9.75, -29.0), rel=0.01)  # T = 4α + β falls by 1


def test_the_flattest_direction_leaves_every_temperature_alone():
    flattest, steepest = bootstrap.directions(tent())
    assert abs(flattest @ np.array([4.0, 1.0])) < 1e-9  # T = 4α + β
    assert abs(steepest @ np.array([4.0, 1.0])) == pytest.approx(17**0.5)
