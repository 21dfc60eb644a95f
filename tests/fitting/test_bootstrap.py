"""Intervals of coefficients, against the plain way of computing them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from research.synthetic import planted_runs, powers_of_two
from tests.fitting.planted import WIDTHS, tent
from tstar import TstarError
from tstar.curves import grids, lines
from tstar.fitting import bootstrap, fit
from tstar.fitting.model import BOUNDS, problem
from tstar.fitting.search import restarted
from tstar.formula.coefficients import get


@pytest.mark.parametrize(
    ("correction", "variant"),
    [("none", "base"), pytest.param("csgcn", "csgcn", marks=pytest.mark.slow)],
)
def test_planted_coefficients_lie_in_the_intervals_with_noise(correction, variant):
    """95 % intervals over three draws of the noise: at most one coefficient in eight outside."""
    planted, inside = get(variant), []
    for draw in range(3):
        runs = planted_runs(
            variant, grid=powers_of_two(8, 64), widths=WIDTHS, seeds=4, noise=0.02, seed=draw
        )
        result = fit(runs, correction, restarts=1, bootstrap=40)
        assert [interval.over for interval in result.intervals] == ["seeds", "conditions"]
        for interval in result.intervals:
            for name, (low, high) in interval.ranges.items():
                assert low < high
                inside.append(low <= getattr(planted, name) <= high)
    assert np.mean(inside) >= 7 / 8


def test_an_interval_holds_its_estimate_on_peaks_and_plateaus():
    """The full simulation of coverage is research/intervals.py; its numbers are in results/fit."""
    from research.intervals import LEVELS, trial

    for kind in ("peaks", "plateaus"):
        rows = pd.DataFrame(trial(kind, seed=0))
        assert rows["holds_estimate"].all()
        for _, part in rows.groupby("coefficient"):
            widths = part.set_index("level")["width"]
            assert [*widths.index] == [*LEVELS]
            assert widths.is_monotonic_increasing
    plateau, peak = (
        pd.DataFrame(trial(kind, 0)).query("level == 0.95")["width"].max()
        for kind in ("plateaus", "peaks")
    )
    assert plateau > 2 * peak


def test_batched_refits_are_as_good_as_scipy_s(found, task):
    theta = np.array(restarted(task, BOUNDS, 0, 1)[0].theta)
    bounds = np.array([BOUNDS[name] for name in task.names])
    rng = np.random.default_rng(1)
    weights = np.stack([bootstrap._weights(task, rng) for _ in range(4)])
    refits = bootstrap._refit(
        task, bootstrap._stack([task.curves] * 4), weights, theta, bounds, rng
    )
    for share, refit in zip(weights, refits, strict=True):
        one = replace(task, weights=share)
        assert float(one.loss(refit)) <= restarted(one, BOUNDS, 2, 1)[0].regret + 1e-6


def test_each_replicate_has_its_own_curves(found, task):
    rng = np.random.default_rng(0)
    drawn = [bootstrap._redraw(found, "val", task.curves, "mean", rng) for _ in range(3)]
    T = rng.uniform(1, 64, (3, 7, len(found)))
    got = bootstrap._stack(drawn)(T)
    for i, one in enumerate(drawn):
        np.testing.assert_allclose(got[i], one(T[i]), atol=1e-12)
    assert not np.allclose(drawn[0].intercept, drawn[1].intercept)


@pytest.mark.parametrize(
    ("accuracies", "means"), [([0, 1, 4], {0, 0.5, 1, 2, 2.5, 4}), ([0, 1], {0, 1}), ([1], {1})]
)
def test_a_replicate_averages_one_accuracy_less_than_there_are(
    accuracies, means, found, task, monkeypatch
):
    """Of n seeds n − 1 are drawn with replacement: every mean of so many is met, and no other."""
    size = (len(accuracies), len(found[0].temperatures))
    values = np.broadcast_to(np.array(accuracies, float)[:, None], size)
    curve = replace(
        found[0], seeds=tuple(range(size[0])), val=values, test=values, ran=np.ones(size, bool)
    )
    monkeypatch.setattr(bootstrap, "lines", lambda *arguments: arguments[-1])
    rng = np.random.default_rng(0)
    drawn = bootstrap._redraw([curve] * 200, "val", task.curves, "mean", rng)
    assert set(np.unique(drawn)) == means


def test_one_seed_has_no_interval_over_seeds():
    runs = planted_runs(grid=powers_of_two(1, largest=64))
    single = grids(runs, metric="val")
    task = problem(single, lines(single, "val"), "none")
    bounds = np.array([BOUNDS[name] for name in task.names])
    made = bootstrap.intervals(
        single, "val", task, np.array([0.5, 1.0]), bounds, replicates=2, seed=0
    )
    assert [interval.over for interval in made] == ["conditions"]


def test_a_draw_that_cannot_tell_the_coefficients_apart_is_drawn_again():
    """Two conditions, two coefficients: each draw must have both."""
    from types import SimpleNamespace

    task = SimpleNamespace(design=np.array([[1.0, 2.0], [1.0, 5.0]]))
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert (bootstrap._weights(task, rng) == 0.5).all()
    tiny = SimpleNamespace(design=task.design * np.array([1.0, 1e-7]))  # the unit does not matter
    assert (bootstrap._weights(tiny, rng) == 0.5).all()


def test_too_few_conditions_for_the_coefficients_are_said():
    """One condition cannot tell α from β, however often it is drawn."""
    with pytest.raises(TstarError, match="needs more conditions than 1 to tell 2 coefficients"):
        bootstrap._weights(tent(), np.random.default_rng(0))


def test_an_interval_spans_its_refits_and_stays_in_the_box(found, task):
    bounds = np.array([BOUNDS[name] for name in task.names])
    theta = np.array(restarted(task, BOUNDS, 0, 1)[0].theta)
    options = dict(replicates=6, seed=4, level=0.8)
    made = bootstrap.intervals(found, "val", task, theta, bounds, **options)
    assert [i.over for i in made] == ["seeds", "conditions"]
    for interval in made:
        refits = np.array(interval.replicates)
        assert refits.shape == (6, 4)
        assert ((refits >= bounds[:, 0]) & (refits <= bounds[:, 1])).all()
        assert interval.level == 0.8
        for i, name in enumerate(task.names):
            low, high = interval.ranges[name]
            ends = np.quantile(refits[:, i], [0.1, 0.9])  # the middle 80 %
            assert low <= min(ends[0], theta[i]) + 1e-12
            assert high >= max(ends[1], theta[i]) - 1e-12
    assert made == bootstrap.intervals(found, "val", task, theta, bounds, **options)
    other = bootstrap.intervals(found, "val", task, theta, bounds, **(options | {"seed": 5}))
    assert made[1].replicates != other[1].replicates


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replicates": 1}, "a whole number of at least 2, got bootstrap=1"),
        ({"level": 0.0}, "level"),
        ({"level": 1.5}, "level"),
    ],
)
def test_bad_options_of_an_interval(found, task, options, message):
    bounds = np.array([BOUNDS[name] for name in task.names])
    given = {"replicates": 2, "seed": 0} | options
    with pytest.raises(TstarError, match=message):
        bootstrap.intervals(found, "val", task, np.zeros(4), bounds, **given)


def test_the_loss_of_a_replicate_is_minus_its_mean_accuracy():
    """T = 11 and 13: 0.9 and 0.82, with the condition's whole weight."""
    task = tent()
    stack = bootstrap._stack([task.curves] * 2)
    candidates = np.array([[[2.0, 3.0], [2.0, 5.0]]] * 2)
    got = bootstrap._loss(task, stack, np.array([[1.0], [0.5]]), candidates)
    np.testing.assert_allclose(got, [[-0.9, -0.82], [-0.45, -0.41]])
