"""The vectorized curves are NumPy's interp, condition by condition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tstar import TstarError
from tstar.lab.curves import Curve, lines


def condition(temperatures, accuracies):
    seeds = max(len(values) for values in accuracies)
    table = np.full((seeds, len(accuracies)), np.nan)
    for i, values in enumerate(accuracies):
        table[: len(values), i] = values
    return Curve(
        {}, np.array(temperatures, float), tuple(range(seeds)), table, table, ~np.isnan(table)
    )


@given(st.integers(0, 10**6), st.sampled_from(["T", "lnT"]))
def test_curves_are_interp(seed, interpolation):
    """Grids of different lengths and places, temperatures inside, outside and on the nodes."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(4):
        grid = np.unique(rng.choice([1, 2, 3, 4, 8, 16, 32, 64.5, 512], rng.integers(3, 9)))
        made.append(condition(grid, rng.random((len(grid), 2))))
    T = np.concatenate(
        [rng.uniform(0.1, 600, (20, 4)), np.full((1, 4), 8.0), np.full((1, 4), 600.0)]
    )
    got = lines(made, "val", interpolation=interpolation)(T)
    scale = np.log if interpolation == "lnT" else np.asarray
    for i, c in enumerate(made):
        means = c.means("val")
        np.testing.assert_allclose(
            got[:, i], np.interp(scale(T[:, i]), scale(c.temperatures), means), atol=1e-12
        )


def test_a_curve_goes_through_its_nodes_and_is_flat_outside():
    made = [condition([2, 4, 8], [[0.1, 0.3], [0.6], [0.4]])]
    line = lines(made, "val", interpolation="T")
    assert line(np.array([[0.5], [2.0], [3.0], [4.0], [8.0], [99.0]]))[:, 0] == pytest.approx(
        [0.2, 0.2, 0.4, 0.6, 0.4, 0.4]
    )
    assert line.best.tolist() == [0.6]


def test_an_interpolation_has_a_name():
    with pytest.raises(TstarError, match="interpolation 'cubic'"):
        lines([condition([1, 2, 3], [[0.0, 0.9, 0.9]] * 3)], "val", interpolation="cubic")
