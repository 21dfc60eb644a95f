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
from tstar.lab.fitting.intervals import directions, intervals, walk
from tstar.lab.fitting.model import BOUNDS, problem
from tstar.lab.fitting.search import solve

PEAK = np.array([2.0, 3.0])  # T = 11
BETA = np.array([0.0, 1.0])


def interval_of(runs, *, level=0.95, replicates=40, seed=0):
    """The interval of α and of β."""
    pose = partial(How().posed, variant="base", check=False)
    found, _ = How().usable(runs)
    return intervals(found, pose, replicates=replicates, seed=seed, level=level)


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
    with pytest.raises(TstarError, match="needs more conditions than 1 to tell 2 coefficients"):
        intervals(made[:1], pose, replicates=2, seed=0)


def test_an_interval_is_reproducible_and_stays_in_the_box():
    runs = planted_runs("base", grid=powers_of_two(1, 64), widths=(64, 512), seeds=2, noise=0.05)
    spans = interval_of(runs, replicates=4, seed=4)
    assert spans == interval_of(runs, replicates=4, seed=4)
    assert spans != interval_of(runs, replicates=4, seed=5)
    for name, (low, high) in spans.items():
        assert BOUNDS[name][0] <= low <= high <= BOUNDS[name][1]


def test_flat_directions_cost_less_than_the_tolerance():
    runs = planted_runs("base", widths=WIDTHS)
    result = fit(runs, "base", **QUICK)
    found = grids(runs)
    task = problem(found, lines(found, "val"), "base")
    for flat in result.flat:
        for end in (flat.low, flat.high):
            assert float(task.loss(np.array(end))) <= result.regret + 1e-3 + 1e-9


def test_coefficients_that_cannot_be_told_apart_are_not_identified():
    """Accuracy does not depend on T: any coefficients are as good."""
    runs = planted_runs("base", seeds=2).assign(val_accuracy=0.8)
    result = fit(runs, "base", bootstrap=2, restarts=1)
    assert result.unidentified == ("alpha", "beta")
    text = str(result)
    assert "flat valley" in text
    assert text.count("not identified") == 2
    assert "bootstrap" not in text


@pytest.mark.parametrize(
    ("start", "way", "tolerance", "ends", "open_names"),
    [
        (PEAK, BETA, 0.04, ((2.0, 2.0), (2.0, 4.0)), ()),  # 0.04 is lost where T moves by 1
        (PEAK, -BETA, 0.04, ((2.0, 2.0), (2.0, 4.0)), ()),
        (PEAK, BETA, 1.0, ((2.0, -100.0), (2.0, 100.0)), ("beta",)),  # up to the bounds
        # A fit on the bound has not walked there.
        ([10.0, -29.0], [1.0, 0.0], 0.04, ((9.75, -29.0), (10.0, -29.0)), ()),
    ],
)
def test_a_walk_ends_where_the_tolerance_is_lost_or_at_a_bound(
    start, way, tolerance, ends, open_names
):
    flat = walk(tent(), np.array(start), np.array(way), tolerance)
    for end, wanted in zip((flat.low, flat.high), ends, strict=True):
        assert end == pytest.approx(wanted, rel=0.01)
        assert tent().loss(np.array(end)) <= tent().loss(np.array(start)) + tolerance + 1e-9
    assert flat.unidentified == open_names


def test_the_flattest_direction_leaves_every_temperature_alone():
    flattest, steepest = directions(tent())
    assert abs(flattest @ np.array([4.0, 1.0])) < 1e-9  # T = 4α + β
    assert abs(steepest @ np.array([4.0, 1.0])) == pytest.approx(17**0.5)
