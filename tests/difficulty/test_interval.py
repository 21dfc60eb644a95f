"""How sure the value is."""

import numpy as np
import pytest
from scipy.stats import t as student

from tstar.difficulty import csg, interval
from tstar.difficulty.interval import bootstrap, over_draws


def test_the_interval_holds_the_value_and_narrows_with_samples(helpers):
    x, y = helpers.blobs(4000, 4, 5, 1.0)
    few, many = csg(x, y, samples=40), csg(x, y, samples=800)
    for result in few, many:
        assert result.interval[0] <= result.value <= result.interval[1]
    assert np.ptp(many.interval) < np.ptp(few.interval) / 2


def test_the_bootstrap_is_as_wide_as_the_spread_over_draws(helpers):
    x, y = helpers.blobs(6000, 4, 5, 1.0)
    one, several = csg(x, y, samples=60), csg(x, y, samples=60, repeats=30)
    assert several.value == one.value
    assert len(several.draws) == 30
    assert len(set(several.draws)) == 30
    assert 0.5 < np.ptp(one.interval) / np.ptp(several.interval) < 2


def test_repeats_of_a_set_that_is_used_whole_do_not_differ(helpers):
    """So that they tell nothing of how sure the value is, and the bootstrap stays."""
    x, y = helpers.blobs(100, 4, 3, 1.0)
    one, several = csg(x, y), csg(x, y, repeats=3)
    assert several.draws == (one.value,) * 3
    assert several.interval == one.interval
    assert several.interval[0] < one.value < several.interval[1]


def test_an_interval_never_leaves_what_csg_can_be():
    """csg lies between 0 and K − 1: near either end the interval stops there."""
    low, high = over_draws(np.array([0.05, 0.1, 0.3]), 3)
    assert low == 0.0
    assert 0.3 < high < 2.0
    low, high = over_draws(np.array([1.7, 1.95, 1.99]), 3)
    assert 0.0 < low < 1.7
    assert high == 2.0


def test_the_reach_over_draws_is_students():
    for n in (2, 5, 11, 40):
        values = np.arange(n) / n + 100
        low, high = over_draws(values, 10_000)
        reach = student.ppf(0.975, n - 1) * values.std(ddof=1)
        assert (high - low) / 2 == pytest.approx(reach, rel=2e-3)


@pytest.mark.parametrize(("classes", "draws"), [(256, 200), (257, 50)])
def test_the_bootstrap_is_the_middle_95_percent_of_its_draws(monkeypatch, classes, draws):
    values = iter(np.arange(1000) / 1000)
    for step in ("expectation", "similarity", "laplacian"):
        monkeypatch.setattr(interval, step, lambda *given: np.eye(1))
    monkeypatch.setattr(interval, "cumulative_gradient", lambda spectrum: next(values))
    owners = np.arange(classes)
    low, high = bootstrap(1.0, owners[:, None], owners, np.ones(classes), classes, seed=0)
    assert next(values) == draws / 1000
    assert (high - 1, 1 - low) == pytest.approx((0.95 * (draws - 1) / 2000,) * 2)
