"""The vectorized objective and the batched bootstrap against the plain way of computing them."""

from dataclasses import replace

import numpy as np
import pytest

from research.synthetic import planted_runs, powers_of_two
from tstar.curves import grids, lines
from tstar.fitting import bootstrap
from tstar.fitting.model import BOUNDS, problem
from tstar.fitting.search import restarted


@pytest.fixture(scope="module")
def found():
    runs = planted_runs(grid=powers_of_two(2, largest=64), seeds=2, noise=0.01)
    return grids(runs, metric="val")


@pytest.fixture(scope="module")
def task(found):
    return problem(found, lines(found, "val"), "csgcn")


def plain_loss(found, theta):
    """One candidate, one condition at a time."""
    alpha, beta, gamma, delta = theta
    total = 0.0
    for c in found:
        means = c.means("val")
        T = alpha * c.facts["num_features"] ** 0.5 + beta
        T += gamma * np.log(c.facts["csg"]) + delta * np.log(c.facts["num_classes"])
        total += max(means) - np.interp(
            np.log(min(max(T, 1.0), 512.0)), np.log(c.temperatures), means
        )
    return total / len(found)


def test_a_population_is_its_candidates_one_by_one(found, task):
    low, high = np.array([BOUNDS[name] for name in task.names]).T
    candidates = np.random.default_rng(0).uniform(low, high, (50, 4))
    wanted = [plain_loss(found, theta) for theta in candidates]
    np.testing.assert_allclose(task.loss(candidates), wanted, atol=1e-12)
    np.testing.assert_allclose(task.columns(candidates.T), wanted, atol=1e-12)
    assert task.columns(candidates[0]) == pytest.approx(wanted[0])


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
    got = bootstrap._accuracy(bootstrap._stack(drawn), T)
    for i, one in enumerate(drawn):
        np.testing.assert_allclose(got[i], one(T[i]), atol=1e-12)
    assert not np.allclose(drawn[0].intercept, drawn[1].intercept)


def test_one_seed_has_no_interval_over_seeds():
    runs = planted_runs(grid=powers_of_two(1, largest=64))
    single = grids(runs, metric="val")
    task = problem(single, lines(single, "val"), "none")
    bounds = np.array([BOUNDS[name] for name in task.names])
    made = bootstrap.intervals(
        single, "val", task, np.array([0.5, 1.0]), bounds, replicates=2, seed=0
    )
    assert [interval.over for interval in made] == ["conditions"]


def test_no_global_random_state_is_touched(task):
    np.random.seed(4)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    restarted(task, BOUNDS, 0, 1)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
