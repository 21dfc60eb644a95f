"""Clustered errors against what they must be in cases that can be solved by hand."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("scipy")

from research.clustered import error, interval


def test_independent_conditions_have_the_ordinary_error():
    values = pd.Series(np.random.default_rng(0).normal(size=50))
    each = pd.Series(range(50))
    assert error(values, each, each) == pytest.approx(values.std(ddof=1) / np.sqrt(50), rel=0.02)


def test_copies_of_a_condition_bring_nothing():
    few = pd.Series(np.random.default_rng(1).normal(size=20))
    many = pd.concat([few] * 5, ignore_index=True)
    cluster = pd.Series(list(range(20)) * 5)
    assert error(many, cluster) == pytest.approx(few.std(ddof=1) / np.sqrt(20), rel=0.01)


def test_the_interval_covers_at_its_rate_when_both_clusters_shift_the_mean():
    random = np.random.default_rng(2)
    covered = []
    for _ in range(300):
        a, b = random.integers(12, size=150), random.integers(10, size=150)
        values = random.normal(size=12)[a] + random.normal(size=10)[b] + random.normal(size=150)
        _, low, high = interval(pd.Series(values), pd.Series(a), pd.Series(b))
        covered.append(low <= 0 <= high)
    assert 0.88 <= np.mean(covered) <= 1.0
