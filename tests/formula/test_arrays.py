"""The equation for many conditions at once is the equation for one."""

import numpy as np
import pytest

import tstar
from tstar.formula.arrays import column, temperatures
from tstar.formula.coefficients import published


@pytest.mark.parametrize("variant", ["base", "csg", "cn", "csgcn"])
def test_many_at_once_are_one_at_a_time(variant):
    cases = [
        (M, K, csg) for M in (1, 64, 2048, 4_000_000) for K in (2, 1000) for csg in (0.1, 88.0)
    ]
    M, K, csg = np.array(cases, dtype=float).T
    one = [tstar.temperature(*case, variant=variant) for case in cases]
    assert temperatures(published()[variant], M, K, csg) == pytest.approx(one, rel=1e-12)


def test_an_unknown_csg_counts_where_it_is_used():
    sets = published()
    assert np.isnan(temperatures(sets["csg"], [64], [10], [np.nan])).all()
    assert np.isfinite(temperatures(sets["cn"], [64], [10], [np.nan])).all()


def test_the_columns():
    assert column("alpha", [4.0, 9.0]).tolist() == [2.0, 3.0]
    assert column("beta", [4.0]).tolist() == [1.0]
    assert column("gamma", [1.0]).tolist() == column("delta", [1.0]).tolist() == [0.0]
