"""What a check calls noise, against drawn proportions."""

import itertools

import numpy as np
import pytest

from tstar.checking.noise import may_be_noise, within_noise


def test_one_sample_of_twelve_is_noise_and_half_of_a_thousand_is_not():
    assert within_noise(0.5, 0.5 + 1 / 12, 12)
    assert within_noise(0.0, 1 / 12, 12)  # neither end is certain
    assert within_noise(0.0, 1.0, 1)
    assert not within_noise(0.25, 0.75, 1000)
    assert within_noise(0.3, 0.3, 0)


def test_the_spread_over_the_seeds_counts_as_well():
    assert not within_noise(0.5, 0.6, 1000)
    assert within_noise(0.5, 0.6, 1000, seeds_error=0.06)
    assert not within_noise(0.5, 0.6, 10**9, seeds_error=0.05)
    assert within_noise(0.5, 0.6, 10**9, seeds_error=0.052)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("grid", [2, 6])
def test_equal_models_are_told_apart_in_at_most_one_check_of_twenty(p, grid):
    """The highest and the lowest of a grid of equal models, drawn independently."""
    pairs = len(list(itertools.combinations(range(grid), 2)))
    drawn = np.random.default_rng(0).binomial(200, p, (2000, grid)) / 200
    apart = [not within_noise(max(row), min(row), 200, pairs=pairs) for row in drawn.tolist()]
    assert 0.01 < np.mean(apart) < 0.065


@pytest.mark.parametrize("samples", [12, 50, 99])
def test_the_largest_difference_that_may_be_noise(samples):
    half = may_be_noise(samples) / 200
    assert within_noise(0.5 - 0.99 * half, 0.5 + 0.99 * half, samples)
    assert not within_noise(0.5 - 1.01 * half, 0.5 + 1.01 * half, samples)
    assert may_be_noise(1) == 100
