"""Intervals of coefficients by theorems, and directions on which they may move."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from tests.lab.fitting.planted import QUICK, WIDTHS, curve, tent
from tests.synthetic import planted_runs, powers_of_two
from tstar import Coefficients, TstarError
from tstar.lab.curves import grids, lines
from tstar.lab.fitting import How, fit
from tstar.lab.fitting.intervals import intervals, unidentified
from tstar.lab.fitting.model import BOUNDS, problem
from tstar.lab.fitting.search import solve


def interval_of(runs, *, level=0.95, replicates=40, seed=0):
    """The interval of α and of β."""
    pose = partial(How().posed, variant="base", check=False)
    found = grids(runs)
    return intervals(found, pose, replicates=replicates, seed=seed, level=level)


@pytest.mark.parametrize(("level", "least", "most"), [(0.5, 0.5, 0.95), (0.95, 0.9, 1.0)])
def test_intervals_cover_at_about_their_level(level, least, most):
    """Fifteen draws of the noise; to be covered is what a fit without noise finds.

    Conditions differ by noise alone here, which both steps of the bootstrap count: the intervals are
    a little wider than they need be.
    """
    planted = Coefficients("planted", 0.6, 1.0)
    few = dict(grid=powers_of_two(4, 64), tasks=((1.5, 10), (7.0, 10), (25.0, 100)))
    truth = solve(How().posed(grids(planted_runs(planted, **few)), "base")).theta
    inside = []
    for draw in range(15):
        runs = planted_runs(planted, **few, seeds=3, noise=0.01, seed=draw)
        spans = interval_of(runs, level=level, replicates=25, seed=draw)
        inside += [
            low <= value <= high for (low, high), value in zip(spans.values(), truth, strict=True)
        ]
    assert least <= np.mean(inside) <= most


def test_seeds_that_disagree_make_an_interval_of_conditions_that_agree():
    """Every condition has the same three seeds: conditions drawn again change nothing, seeds do."""
    runs = planted_runs(
        Coefficients("planted", 0.0, 4.0), tasks=((2.0, 10),), grid=[1, 2, 4, 8, 16]
    )
    three = [
        runs.assign(seed=i, val_accuracy=0.9 - 0.05 * np.abs(np.log(runs["temperature"] / peak)))
        for i, peak in enumerate((2.0, 4.0, 8.0))
    ]
    assert interval_of(runs)["beta"] == pytest.approx((4.0, 4.0), abs=1e-6)
    low, high = interval_of(pd.concat(three))["beta"]
    assert low < 4.0 < high


def test_runs_that_cannot_tell_the_coefficients_apart_are_drawn_again():
    """Two conditions, two coefficients: each draw must have both."""
    made = [curve([0.5, 0.9, 0.5], num_features=M) for M in (16, 64)]

    def pose(drawn):
        return problem(drawn, lines(drawn, "val"), "base", check=False)

    spans = intervals(made, pose, replicates=20, seed=0)
    assert spans["beta"] == pytest.approx((11.0, 11.0))
    # One condition cannot tell α from β, however often it is drawn.
    with pytest.raises(TstarError, match="needs more conditions than 1 to separate 2 coefficients"):
        intervals(made[:1], pose, replicates=2, seed=0)


def test_an_interval_is_reproducible_and_stays_in_the_box():
    runs = planted_runs("base", grid=powers_of_two(1, 64), widths=(64, 512), seeds=2, noise=0.05)
    spans = interval_of(runs, replicates=4, seed=4)
    assert spans == interval_of(runs, replicates=4, seed=4)
    assert spans != interval_of(runs, replicates=4, seed=5)
    for name, (low, high) in spans.items():
        assert BOUNDS[name][0] <= low <= high <= BOUNDS[name][1]


def test_coefficients_that_cannot_be_told_apart_are_not_identified():
    """Accuracy does not depend on T: any coefficients are as good."""
    runs = planted_runs("base", seeds=2).assign(val_accuracy=0.8)
    text = str(fit(runs, "base", bootstrap=2, restarts=1))
    assert text.count("not identified") == 2
    assert "bootstrap" not in text
    assert fit(planted_runs("base", widths=WIDTHS), "base", **QUICK).unidentified == ()


def test_two_widths_tell_alpha_from_beta_and_one_does_not():
    assert unidentified(tent(), np.array([2.0, 3.0]), 0.04) == ("alpha", "beta")
    made = [curve([0.5, 0.9, 0.5], num_features=M) for M in (16, 64)]
    task = problem(made, lines(made, "val"), "base")
    assert unidentified(task, np.array([0.0, 11.0]), 0.04) == ()
    assert unidentified(task, np.array([0.0, 11.0]), 1.0) == ("alpha", "beta")
