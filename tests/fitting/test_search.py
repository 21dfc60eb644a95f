"""The search for the optimum."""

import math

import numpy as np

from research.synthetic import PAPER_TASKS, planted_runs
from tests.fitting.planted import QUICK
from tstar.curves import grids
from tstar.fitting import fit
from tstar.fitting.model import BOUNDS
from tstar.fitting.search import restarted


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
