"""Each step against an independent formula, and the two ends of the scale."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import laplacian as scipy_laplacian
from scipy.spatial.distance import braycurtis

from tstar.data.arrays import encode
from tstar.difficulty.draw import draw
from tstar.difficulty.expectation import expectation, sample_weights
from tstar.difficulty.gradient import cumulative_gradient
from tstar.difficulty.laplacian import laplacian
from tstar.difficulty.similarity import similarity
from tstar.difficulty.volume import FLOOR, log_volumes


def row_stochastic(K, seed=0):
    S = np.random.default_rng(seed).random((K, K)) ** 4
    return S / S.sum(axis=1, keepdims=True)


def test_similarity_is_one_minus_bray_curtis():
    S = row_stochastic(7)
    expected = [[1 - braycurtis(a, b) for b in S] for a in S]
    np.testing.assert_allclose(similarity(S), expected, atol=1e-14)


def test_laplacian_agrees_with_scipy_and_works_on_stacks():
    W = np.stack([similarity(row_stochastic(6, seed)) for seed in range(3)])
    expected = np.stack([scipy_laplacian(w) for w in W])
    np.testing.assert_allclose(laplacian(W), expected, atol=1e-14)


@pytest.mark.parametrize("K", [2, 3, 10, 100])
def test_separated_classes_give_exactly_zero_and_identical_ones_K_minus_one(K):
    assert cumulative_gradient(np.linalg.eigvalsh(laplacian(similarity(np.eye(K))))) == 0.0
    same = np.full((K, K), 1 / K)
    value = float(cumulative_gradient(np.linalg.eigvalsh(laplacian(similarity(same)))))
    assert value == pytest.approx(K - 1, abs=1e-11)


def test_gradient_by_hand():
    # λ = 0, 3, 4, 10 (K = 4): steps 3/4, 1/3, 6/2; running maxima 3/4, 3/4, 3
    assert float(cumulative_gradient(np.array([0.0, 3.0, 4.0, 10.0]))) == pytest.approx(4.5)


def test_volume_is_the_reference_formula_and_neither_under_nor_overflows():
    data = np.random.default_rng(0).random((30, 4))
    queries, neighbors = np.array([3, 8]), np.array([[1, 2, 5], [0, 9, 20]])
    expected = [
        math.log(max((2 * np.abs(data[n] - data[q]).max(axis=0)).prod(), FLOOR))
        for q, n in zip(queries, neighbors, strict=True)
    ]
    np.testing.assert_allclose(log_volumes(data, queries, neighbors), expected, rtol=1e-12)
    wide = np.random.default_rng(1).random((30, 5000))
    assert log_volumes(wide, queries, neighbors).tolist() == [math.log(FLOOR)] * 2
    huge = log_volumes(wide * 255, queries, neighbors)
    assert np.isfinite(huge).all()
    assert (huge > math.log(np.finfo(float).max)).all()  # the plain product would overflow


def test_volume_of_8_bit_pixels_is_that_of_the_unit_interval():
    pixels = np.random.default_rng(0).integers(0, 256, (20, 3), dtype=np.uint8)
    queries, neighbors = np.array([0, 7]), np.array([[1, 2], [4, 5]])
    np.testing.assert_allclose(
        log_volumes(pixels, queries, neighbors, 1 / 255),
        log_volumes(pixels / 255, queries, neighbors),
        rtol=1e-12,
    )


def test_expectation_with_volumes_by_hand():
    # class 0: samples with neighbors (0, 1) and (1, 1), volumes 1 and 4; class 1: one, (1, 0)
    codes, owners = np.array([[0, 1], [1, 1], [1, 0]]), np.array([0, 0, 1])
    weights = sample_weights(np.log([1.0, 4.0, 1e300]), owners, 2)
    S = expectation(codes, owners, weights, 2)
    np.testing.assert_allclose(S, [[0.5 / 1.25, 0.75 / 1.25], [0.5, 0.5]])


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(0, 99), st.integers(1, 9))
def test_draw_takes_what_there_is_once_and_from_the_right_class(labels, seed, samples):
    codes = np.unique(labels, return_inverse=True)[1]
    drawn = draw(codes, samples, seed)
    for code, rows in enumerate(drawn):
        assert len(rows) == min(samples, (codes == code).sum())
        assert len(set(rows.tolist())) == len(rows)
        assert (codes[rows] == code).all()


def test_draw_is_uniform_over_positions_and_differs_between_seeds_and_repeats():
    codes = np.zeros(40, dtype=np.int64)
    counts = np.zeros(40)
    for seed in range(400):
        counts[draw(codes, 10, seed)[0]] += 1
    assert counts.min() > 60  # the mean is 100, the standard deviation 8.7
    assert counts.max() < 140
    draws = [tuple(draw(codes, 10, 0, repeat)[0]) for repeat in range(5)]
    assert len(set(draws)) == 5


def test_the_draw_is_the_same_on_every_platform():
    drawn = [rows.tolist() for rows in draw(np.arange(12) % 2, 3, 0)]
    assert drawn == [[2, 6, 8], [1, 3, 11]]


def test_volumes_of_pixels_are_those_of_the_same_numbers_in_float64():
    rng = np.random.default_rng(3)
    data = rng.integers(0, 256, (40, 9), dtype=np.uint8)
    queries, neighbors = np.arange(6), rng.integers(6, 40, (6, 4))
    eight_bit = log_volumes(data, queries, neighbors, 1 / 64)
    assert np.array_equal(
        eight_bit, log_volumes(data.astype(np.float64), queries, neighbors, 1 / 64)
    )
    assert (eight_bit > math.log(FLOOR)).all()


@pytest.mark.parametrize(
    "labels", [[3, 1, 3, 2, 1], ["b", "a", "b"], [True, False], [7, 7, -(2**40)]]
)
def test_an_array_of_labels_is_coded_as_the_list_of_its_values(labels):
    codes, classes = encode(np.array(labels))
    listed, names = encode(labels)
    assert codes.tolist() == listed.tolist()
    assert classes == names
    assert list(map(type, classes)) == list(map(type, names))
