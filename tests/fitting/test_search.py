"""The search for the optimum."""

import math

import numpy as np
import pytest

from research.synthetic import PAPER_TASKS, planted_runs
from tests.fitting.planted import QUICK, tent
from tstar import TstarError
from tstar.curves import grids
from tstar.fitting import fit
from tstar.fitting.model import BOUNDS
from tstar.fitting.search import Restart, box, polished, restarted


def test_the_optimum_beats_every_neighbor_and_a_brute_force_search():
    runs = planted_runs("base", tasks=PAPER_TASKS[:2])
    result = fit(runs, "none", **QUICK)
    found = grids(runs, metric="val")
    best = math.inf
    for alpha in np.linspace(0, 2, 33):
        for beta in np.linspace(-20, 20, 41):
            regret = []
            for c in found:
                means = c.means("val")
                T = min(max(alpha * math.sqrt(c.facts["num_features"]) + beta, 1.0), 512.0)
                regret.append(max(means) - np.interp(np.log(T), np.log(c.temperatures), means))
            best = min(best, float(np.mean(regret)))
    assert result.regret <= best + 1e-9


def test_no_global_random_state_is_touched(task):
    np.random.seed(4)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    restarted(task, BOUNDS, 0, 1)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_restarts_are_sorted_and_reproducible(task):
    found = restarted(task, BOUNDS, 3, 3)
    assert [r.regret for r in found] == sorted(r.regret for r in found)
    assert found == restarted(task, BOUNDS, 3, 3)
    assert len({r.theta for r in found}) == 3
    assert all(r.generations > 1 and r.evaluations > r.generations for r in found)
    assert all(float(task.loss(np.array(r.theta))) == pytest.approx(r.regret) for r in found)
    with pytest.raises(TstarError, match="at least 1, got restarts=0"):
        restarted(task, BOUNDS, 0, 0)


def test_polishing_goes_down_to_the_peak_and_never_up():
    start = Restart((2.0, 4.0), 0.04, True, "ended", 7, 100)  # T = 12, the peak is at 11
    better = polished(tent(), BOUNDS, start)
    assert better.regret == pytest.approx(0.0, abs=1e-6)
    assert float(tent().temperatures(np.array(better.theta))[0]) == pytest.approx(11.0, abs=1e-4)
    assert better.evaluations > 100
    assert (better.generations, better.message) == (7, "ended")
    lower = Restart((2.0, 4.0), -1.0, True, "ended", 7, 100)
    kept = polished(tent(), BOUNDS, lower)
    assert (kept.theta, kept.regret) == ((2.0, 4.0), -1.0)
    assert kept.evaluations > 100


def test_bounds_may_be_narrowed_one_by_one():
    assert box(None) == BOUNDS
    assert box({"beta": (0, 3)}) == BOUNDS | {"beta": (0.0, 3.0)}
    for wrong in ((3, 3), (4, 3), (0, math.inf), (math.nan, 1)):
        with pytest.raises(
            TstarError,
            match=r"low < high must hold for the bounds of beta|bound of beta must be finite",
        ):
            box({"beta": wrong})
    for wrong in (3, (1,), ("a", "b"), (1, 2, 3)):
        with pytest.raises(
            TstarError, match=r"bounds of beta must be \(low, high\)|bound of beta must be a number"
        ):
            box({"beta": wrong})
    with pytest.raises(TstarError, match="coefficient in bounds 'tau'"):
        box({"tau": (0, 1)})
