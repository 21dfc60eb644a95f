"""Volumes of the boxes around neighbors."""

import math

import numpy as np

from tstar.difficulty.volume import log_volumes

FLOOR = 1e-4  # the reference's


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


def test_volumes_of_pixels_are_those_of_the_same_numbers_in_float64():
    rng = np.random.default_rng(3)
    data = rng.integers(0, 256, (40, 9), dtype=np.uint8)
    queries, neighbors = np.arange(6), rng.integers(6, 40, (6, 4))
    eight_bit = log_volumes(data, queries, neighbors, 1 / 64)
    assert np.array_equal(
        eight_bit, log_volumes(data.astype(np.float64), queries, neighbors, 1 / 64)
    )
    assert (eight_bit > math.log(FLOOR)).all()
