"""Paired tests and noise by hand; that the test is scipy's is tested in test_comparing."""

import numpy as np
import pytest

from tstar.lab.statistics import holm, noise, paired

DEFAULT = [0.80, 0.82, 0.79, 0.83, 0.81]
BETTER = [0.84, 0.87, 0.82, 0.88, 0.86]


def test_pairing_matters():
    """The same scores on other seeds: the same means, and another answer."""
    shuffled = [BETTER[i] for i in (3, 2, 1, 0, 4)]
    a, b = paired(BETTER, DEFAULT), paired(shuffled, DEFAULT)
    assert a.difference == pytest.approx(b.difference)
    assert a.p_t < 0.01 < b.p_t


def test_holm_by_hand():
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03})
    assert found == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"b": 1.0, "a": 1.0}


def test_identical_scores_and_too_few_of_them():
    assert paired(DEFAULT, DEFAULT).p_t == 1.0
    same_gap = paired([2.0, 3.0], [1.0, 2.0])
    assert (same_gap.difference, same_gap.p_t) == (1.0, None)
    assert paired([2.0], [1.0]).p_t is None


def test_noise_covers_the_truth_about_as_often_as_it_says():
    """Two models of equal worth on 300 samples and three seeds differ by more in about 5 %."""
    rng = np.random.default_rng(0)
    beyond = 0
    for _ in range(400):
        hard = rng.random(300)  # shared: both models agree on what is easy
        first, second = ((rng.random((3, 300)) > hard).astype(float) for _ in range(2))
        gap = abs(first.mean() - second.mean())
        beyond += gap > noise(first.tolist(), second.tolist())
    assert beyond / 400 < 0.07
    worse = (rng.random((3, 300)) > 0.5).astype(float)
    assert worse.mean() + noise(np.ones((3, 300)), worse) < 1
