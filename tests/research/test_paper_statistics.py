"""Paired tests and rankings, against SciPy and worked examples."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from research.paper.statistics import paired, paired_variance_p, ranking, signed_rank_p
from tstar import TstarError


@given(st.lists(st.integers(-40, 40).filter(bool), min_size=1, max_size=9))
def test_signed_rank_p_by_brute_force(values):
    """All 2ⁿ signs, ties and all."""
    x = np.array(values, dtype=float)
    ranks = stats.rankdata(np.abs(x))
    center = ranks.sum() / 2
    observed = abs(ranks[x > 0].sum() - center)
    hits = [
        abs(ranks[np.array(signs)].sum() - center) >= observed - 1e-9
        for signs in itertools.product([False, True], repeat=len(x))
    ]
    assert signed_rank_p(x) == pytest.approx(np.mean(hits))


def test_paired_counts_and_sign_test():
    result = paired([1.0, 2.0, -0.5, 0.0, 3.0, 1e-12])
    assert (result.n, result.wins, result.ties, result.losses) == (6, 3, 2, 1)
    assert result.sign_p == pytest.approx(stats.binomtest(3, 4).pvalue)
    assert result.worst == -0.5
    assert paired([0.0]).wilcoxon_p == paired([0.0]).sign_p == 1.0
    with pytest.raises(TstarError, match="finite"):
        paired([float("nan")])


def test_ranking_reproduces_friedman_and_the_tabled_critical_value():
    scores = np.random.default_rng(2).normal(size=(14, 4))
    scores[:, 0] += 2
    result = ranking(scores, ("a", "b", "c", "d"))
    assert result.ranks[0] == min(result.ranks)
    assert sum(result.ranks) == pytest.approx(10)
    # Demšar 2006, table 5: q at 0.05 is 2.569 for four classifiers; his example has CD 1.25 for N = 14.
    assert result.critical_difference == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), abs=1e-3)
    assert result.chi2_p == pytest.approx(stats.friedmanchisquare(*scores.T).pvalue)


def test_groups_are_maximal_and_cover_all():
    scores = np.tile([5.0, 4.0, 3.0, 2.0, 1.0], (40, 1))
    apart = ranking(scores, tuple("abcde"))
    assert apart.critical_difference < 1
    assert apart.groups() == [("a",), ("b",), ("c",), ("d",), ("e",)]
    together = ranking(scores[:2], tuple("abcde"))
    assert together.critical_difference > 4
    assert together.groups() == [tuple("abcde")]


def test_equal_variances_are_seen_as_equal():
    rng = np.random.default_rng(3)
    x, y = rng.normal(0, 1, (2, 300))
    assert paired_variance_p(x, y) > 0.05
    assert paired_variance_p(x, 3 * y) < 1e-6
