"""The search for the optimum, and what noise cannot tell from it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import differential_evolution

from tests.lab.fitting.planted import curve
from tests.synthetic import PAPER_TASKS, planted_runs, powers_of_two
from tstar import Coefficients, TstarError
from tstar.lab.curves import grids, lines
from tstar.lab.fitting import search
from tstar.lab.fitting.model import BOUNDS, coefficient_names, problem
from tstar.lab.fitting.search import TOLERANCE, Solution, crossings, noise, ranges, solve


def environment(seed=0, interpolation="lnT", spread=0.01):
    """One environment of four widths with noise."""
    runs = planted_runs("base", tasks=PAPER_TASKS[:1], seeds=2, noise=spread, seed=seed)
    found = grids(runs)
    return found, problem(found, lines(found, "val", interpolation=interpolation), "base")


@pytest.mark.parametrize("interpolation", ["T", "lnT"])
@pytest.mark.parametrize("seed", range(2))
def test_no_other_search_finds_a_better_pair(interpolation, seed):
    """Differential evolution, and 20,000 random pairs."""
    _, task = environment(seed, interpolation)
    found = solve(task)
    limits = [BOUNDS[name] for name in task.names]
    options = {"vectorized": True, "updating": "deferred", "polish": False, "seed": seed}
    other = differential_evolution(lambda t: task.loss(t.T), limits, tol=1e-8, **options)
    assert found.regret <= other.fun + 1e-10
    low, high = np.array(limits).T
    pairs = np.random.default_rng(seed).uniform(low, high, (20_000, 2))
    assert found.regret <= task.loss(pairs).min() + 1e-12
    assert float(task.loss(np.array(found.theta))) == pytest.approx(found.regret, abs=1e-12)


def test_two_coefficients_hang_on_no_seed():
    _, task = environment()
    assert solve(task, seed=0) == solve(task, seed=1) == solve(task, seed=2, restarts=1)


def test_a_crossing_gives_two_widths_their_temperatures():
    """α·4 + β and α·8 + β are nodes of the grid at every crossing that is no bound."""
    made = [curve([0.5, 0.9, 0.5], num_features=M) for M in (16, 64)]
    task = problem(made, lines(made, "val", interpolation="T"), "base")
    points = crossings(task)
    low, high = np.array([*BOUNDS.values()])[:2].T
    inner = points[((points > low + 1e-9) & (points < high - 1e-9)).all(axis=1)]
    T = np.stack([4 * inner[:, 0] + inner[:, 1], 8 * inner[:, 0] + inner[:, 1]])
    levels = np.array([1.0, 11.0, 21.0, 512.0])
    assert np.abs(T[..., None] - levels).min(axis=-1).max() < 1e-9
    assert len(crossings(task, split=4)) > 2 * len(points)


def test_of_several_optima_the_flattest_is_taken():
    """Accuracy that does not depend on T: α = 0 and β = 0 say so."""
    made = [curve([0.5, 0.5, 0.5], num_features=M) for M in (16, 64)]
    task = problem(made, lines(made, "val"), "base")
    found = solve(task)
    assert found.theta[0] == 0.0
    assert ranges(task, found, TOLERANCE)[1] is False


def test_a_best_T_of_one_is_not_identified():
    """Any pair with T ≤ 1 at every width fits."""
    made = [curve([0.9, 0.7, 0.5], num_features=M) for M in (64, 256)]
    task = problem(made, lines(made, "val"), "base")
    found = solve(task)
    assert task.temperatures(np.array(found.theta)).tolist() == [1.0, 1.0]
    spans, identified = ranges(task, found, 1e-6)
    assert not identified
    assert spans["beta"][0] == BOUNDS["beta"][0]


def test_the_range_holds_the_fit_and_grows_with_the_noise():
    _, task = environment()
    best = solve(task)
    narrow, wide = (ranges(task, best, tolerance)[0] for tolerance in (1e-6, 1e-2))
    for i, name in enumerate(task.names):
        assert wide[name][0] <= narrow[name][0] <= best.theta[i] <= narrow[name][1] <= wide[name][1]
    assert wide["alpha"][1] - wide["alpha"][0] > narrow["alpha"][1] - narrow["alpha"][0]


def test_noise_is_that_of_the_seeds():
    """Two seeds 0.02 apart at every T: variance 2e-4, of a mean of two 1e-4, over four conditions."""
    values = np.array([[0.5, 0.7, 0.5], [0.52, 0.72, 0.52]])
    one = replace(curve([0.5, 0.7, 0.5]), seeds=(0, 1), val=values, ran=np.ones((2, 3), bool))
    assert noise([one] * 4, "val") == pytest.approx(1.96 * math.sqrt(2 * 1e-4 / 4))
    assert noise([curve([0.5, 0.7, 0.5])], "val") is None


def store(seed):
    """A small store: four or five tasks, coefficients, depth and noise at random, runs left out."""
    rng = np.random.default_rng(seed)
    tasks = [(float(np.exp(rng.uniform(0, 4.5))), int(rng.choice([2, 10, 43, 200])))]
    tasks += [
        (float(np.exp(rng.uniform(0, 4.5))), K) for K in (5, 20, 100, 10, 300)[: 3 + seed % 2]
    ]
    alpha, beta, gamma, delta = rng.uniform([0, -10, -5, -8], [1.5, 20, 5, 2]).tolist()
    runs = planted_runs(
        Coefficients("planted", alpha, beta, gamma, delta),
        tasks=tasks,
        widths=(64, 512),
        grid=powers_of_two(1, 64.0),
        noise=(0.0, 0.01, 0.05)[seed % 3],
        seed=seed,
    )
    depth = (1.0, 0.1, 0.02)[seed // 3 % 3]
    runs["val_accuracy"] = 0.9 - depth * (0.9 - runs["val_accuracy"])
    return runs[(rng.random(len(runs)) < 0.7) | runs["temperature"].isin([1.0, 8.0, 64.0])]


@pytest.mark.parametrize("seed", range(24))
def test_more_terms_never_fit_worse(seed):
    """Nor does a fit ever lose to the paper's coefficients."""
    found = grids(store(seed))
    curves, solved = lines(found, "val"), {}
    task = problem(found, curves, "csgcn")
    solve(task, seed, restarts=1, solved=solved)
    base, csg, cn, csgcn = (
        solved[coefficient_names(variant)] for variant in ("base", "csg", "cn", "csgcn")
    )
    for more, fewer in ((csg, base), (cn, base), (csgcn, csg), (csgcn, cn)):
        assert more.regret <= fewer.regret + 1e-12
    for variant in ("base", "csg", "cn", "csgcn"):
        task = problem(found, curves, variant)
        solution = solved[task.names]
        assert float(task.loss(np.array(solution.theta))) == pytest.approx(solution.regret)
        assert solution.regret <= task.loss(task.published) + 1e-12


def test_restarts_that_disagree_are_no_success(task, monkeypatch):
    """Two of three restarts end at a higher regret."""
    best = np.array(solve(task, restarts=1).theta)
    ends = iter([best, best + BOUNDS["beta"][1], best + BOUNDS["beta"][1]])
    monkeypatch.setattr(search, "_evolve", lambda *_, **__: next(ends))
    monkeypatch.setattr(search, "_polished", lambda problem, start: start)
    special = {task.without(name).names: Solution((0.0, 0.0, 0.0), 1.0) for name in task.names[2:]}
    found = solve(task, restarts=3, solved=special)
    assert not found.success
    assert found.how == "differential evolution, 1 of 3 restarts reached this regret"


def test_four_coefficients_evolve_reproducibly(task):
    found = solve(task, seed=3, restarts=2)
    assert found == solve(task, seed=3, restarts=2)
    assert found.how == "differential evolution, 2 of 2 restarts reached this regret"
    assert float(task.loss(np.array(found.theta))) == pytest.approx(found.regret)
    with pytest.raises(TstarError, match="at least 1, got restarts=0"):
        solve(task, restarts=0)
