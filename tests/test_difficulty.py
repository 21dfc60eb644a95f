"""csg: the reference's values, its properties, and each step by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import laplacian as scipy_laplacian
from scipy.spatial.distance import braycurtis

import tstar
from tests.csg_data import blobs, oracle, pictures, row_stochastic
from tstar import difficulty
from tstar.difficulty import (
    area_resize,
    csg,
    cumulative_gradient,
    draw,
    expectation,
    laplacian,
    log_volumes,
    sample_weights,
    similarity,
)
from tstar.errors import TstarError

pytest.importorskip("spectral_metric")


@pytest.mark.parametrize("neighbors", [1, 3, 5])
@pytest.mark.parametrize("dimensions", [2, 3, 8])
def test_embeddings_of_few_dimensions(neighbors, dimensions):
    x, y = blobs(600, 5, dimensions, 0.7, seed=dimensions)
    result = csg(x, y, samples=60, neighbors=neighbors, seed=4)
    value, S, W, spectrum = oracle(x, y, result.indices, neighbors)
    assert result.value == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(result.expectation, S, atol=1e-9)
    np.testing.assert_allclose(result.similarity, W, atol=1e-9)
    np.testing.assert_allclose(result.spectrum, spectrum, atol=1e-9)
    assert result.regime == "volumes" or dimensions == 8 or result.floored < 0.6
    assert 0.2 < result.value < 3.9  # neither end of the scale, where agreement would mean little


@pytest.mark.parametrize("as_bytes", [True, False])
def test_pixels(as_bytes):
    images, y = pictures(500, 4, 16)
    flat = images.reshape(len(images), -1)
    result = csg(images if as_bytes else flat / 255, y, samples=50, size=16)
    value, S, *_ = oracle(flat / 255, y, result.indices, 5)
    assert result.regime == "floored"
    assert result.value == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(result.expectation, S, atol=1e-12)
    assert 0.2 < result.value < 2.9


def test_unequal_classes_and_pixels_of_few_dimensions():
    rng = np.random.default_rng(0)
    y = rng.choice(4, 300, p=[0.6, 0.25, 0.1, 0.05])
    # distinct values: ties are broken otherwise by the reference, which sorts without an order
    x = rng.permutation(300 * 5).reshape(300, 5) / 1500 + 0.15 * y[:, None]
    result = csg(x, y, samples=40)
    value, S, *_ = oracle(x, y, result.indices, 5)
    assert result.samples == tuple(np.minimum(np.bincount(y), 40))
    assert result.value == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(result.expectation, S, atol=1e-9)


def test_renaming_classes_changes_no_bit():
    x, y = blobs(300, 5, 4, 0.8)
    first = csg(x, y, samples=30)
    names = np.array(["pear", "fig", "apple", "nut", "lime"])
    for labels in (
        names[y],
        [(int(i), "x") for i in y],
        (7 - y) * 1.5,
        [frozenset([i]) for i in y],
    ):
        other = csg(x, labels, samples=30)
        assert other.value == first.value
        assert other.interval == first.interval
        assert (other.spectrum == first.spectrum).all()
    renamed = csg(x, names[y], samples=30)
    assert renamed.classes == tuple(sorted(names))
    order = [int(np.flatnonzero(names == c)[0]) for c in renamed.classes]
    assert (renamed.similarity == first.similarity[np.ix_(order, order)]).all()


def test_same_seed_same_bits_other_seed_other_draw():
    x, y = blobs(400, 4, 6, 1.0)
    first, again, other = (csg(x, y, samples=25, seed=s) for s in (3, 3, 4))
    assert first.to_dict() == again.to_dict()
    assert first.value == again.value
    assert first.indices[0].tolist() == again.indices[0].tolist()
    assert other.indices[0].tolist() != first.indices[0].tolist()


def test_order_of_the_data_does_not_matter_when_all_samples_are_used():
    x, y = blobs(200, 4, 5, 0.9)
    order = np.random.default_rng(5).permutation(len(x))
    first, other = csg(x, y, samples=1000), csg(x[order], y[order], samples=1000)
    assert other.value == pytest.approx(first.value, abs=1e-12)
    np.testing.assert_allclose(other.similarity, first.similarity, atol=1e-12)


def test_a_duplicate_is_a_neighbor_and_the_sample_itself_is_not():
    x = np.array([[0.0], [0.0], [5.0], [5.0]])  # twins of different classes
    result = csg(x, ["a", "b", "a", "b"], neighbors=1)
    assert (result.expectation == [[0, 1], [1, 0]]).all()


def test_scale_of_features_changes_volumes_only_through_the_floor():
    x, y = blobs(300, 3, 4, 0.8)
    small, large = csg(x * 1e-3, y), csg(x * 1e30, y)
    assert small.regime == "floored"
    assert large.regime == "volumes"
    assert large.value == pytest.approx(float(csg(x * 1e60, y)), abs=1e-9)


@pytest.mark.parametrize(
    "options", [{"samples": 0}, {"neighbors": 0}, {"neighbors": 2.5}, {"seed": -1}, {"size": 0}]
)
def test_bad_options(options):
    with pytest.raises(TstarError, match=next(iter(options))):
        csg(*blobs(60, 3, 2, 1.0), **options)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(0, 99), st.integers(1, 9))
def test_draw_takes_what_there_is_once_and_from_the_right_class(labels, seed, samples):
    codes = np.unique(labels, return_inverse=True)[1]
    drawn = draw(codes, samples, seed)
    for code, rows in enumerate(drawn):
        assert len(rows) == min(samples, (codes == code).sum())
        assert len(set(rows.tolist())) == len(rows)
        assert (codes[rows] == code).all()


def test_draw_is_uniform_over_positions_and_differs_between_seeds():
    codes = np.zeros(40, dtype=np.int64)
    counts = np.zeros(40)
    for seed in range(400):
        counts[draw(codes, 10, seed)[0]] += 1
    assert counts.min() > 60  # the mean is 100, the standard deviation 8.7
    assert counts.max() < 140
    assert len({tuple(draw(codes, 10, seed)[0]) for seed in range(5)}) == 5


def test_the_draw_is_the_same_on_every_platform():
    drawn = [rows.tolist() for rows in draw(np.arange(12) % 2, 3, 0)]
    assert drawn == [[2, 6, 8], [1, 3, 11]]


def test_values_whose_squares_underflow_are_measured():
    x, y = blobs(200, 3, 4, 0.8)
    tiny = csg(x * 2.0**-600, y)
    assert tiny.regime == "floored"
    assert tiny.value == csg(x * 1e-3, y).value == pytest.approx(csg(x * 2.0**-20, y).value)


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


def test_expectation_with_volumes_by_hand():
    # class 0: samples with neighbors (0, 1) and (1, 1), volumes 1 and 4; class 1: one, (1, 0)
    codes, owners = np.array([[0, 1], [1, 1], [1, 0]]), np.array([0, 0, 1])
    weights = sample_weights(np.log([1.0, 4.0, 1e300]), owners, 2)
    S = expectation(codes, owners, weights, 2)
    np.testing.assert_allclose(S, [[0.5 / 1.25, 0.75 / 1.25], [0.5, 0.5]])


def test_similarity_is_one_minus_bray_curtis():
    S = row_stochastic(7)
    expected = [[1 - braycurtis(a, b) for b in S] for a in S]
    np.testing.assert_allclose(similarity(S), expected, atol=1e-14)


def test_laplacian_agrees_with_scipy():
    W = similarity(row_stochastic(6))
    np.testing.assert_allclose(laplacian(W), scipy_laplacian(W), atol=1e-14)


@pytest.mark.parametrize("K", [2, 3, 10, 100])
def test_separated_classes_give_exactly_zero_and_identical_ones_K_minus_one(K):
    assert cumulative_gradient(np.linalg.eigvalsh(laplacian(similarity(np.eye(K))))) == 0.0
    same = np.full((K, K), 1 / K)
    value = float(cumulative_gradient(np.linalg.eigvalsh(laplacian(similarity(same)))))
    assert value == pytest.approx(K - 1, abs=1e-11)


def test_gradient_by_hand():
    # λ = 0, 3, 4, 10 (K = 4): steps 3/4, 1/3, 6/2; running maxima 3/4, 3/4, 3
    assert float(cumulative_gradient(np.array([0.0, 3.0, 4.0, 10.0]))) == pytest.approx(4.5)


def test_the_interval_holds_the_value_and_narrows_with_samples():
    x, y = blobs(4000, 4, 5, 1.0)
    few, many = csg(x, y, samples=40), csg(x, y, samples=800)
    for result in few, many:
        assert result.interval[0] <= result.value <= result.interval[1]
    assert np.ptp(many.interval) < np.ptp(few.interval) / 2


def test_the_bootstrap_is_as_wide_as_the_spread_over_draws():
    x, y = blobs(6000, 4, 5, 1.0)
    draws = [csg(x, y, samples=60, seed=seed) for seed in range(20)]
    spread = np.std([draw.value for draw in draws], ddof=1)
    assert 0.5 < np.mean([np.ptp(draw.interval) for draw in draws]) / (2 * 1.96 * spread) < 2


def test_the_record_prints_converts_and_compares():
    x, y = pictures(120, 3, 8)
    result = csg(x, np.array(["cat", "dog", "emu"])[y], samples=20)
    assert float(result) == result.value
    assert f"csg = {result.value:.4g}" in str(result)
    assert "floored" in str(result)
    assert "Csg(" in repr(result)
    pairs = result.hardest_pairs(2)
    assert pairs[0][2] >= pairs[1][2]
    assert {*pairs[0][:2]} <= {"cat", "dog", "emu"}
    names = replace(result, classes=("a\x1b[31m", "b\udcff", 3))
    assert {"a\\x1b[31m", "b\\udcff"} & set(str(names).split())  # nothing a terminal obeys
    assert "\x1b" not in str(names)
    tstar.temperature(64, 3, result if result.value > 0 else 1.0)
    four = csg(*blobs(40, 4, 2, 1.0))  # six pairs
    assert str(four).partition("most alike:\n")[2].count("\n") == 4


def test_wild_volumes_are_called_of_little_use():
    rng = np.random.default_rng(0)
    result = csg(rng.normal(size=(200, 500)) * 200, np.arange(200) % 4)
    assert result.regime == "volumes"
    assert result.effective_samples < 5
    assert "of little use" in str(result)
    for few, said in ((4.99, True), (5.0, False)):
        assert ("of little use" in str(replace(result, effective_samples=few))) is said


def random_images(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12))
def test_resizing_equals_repeating_each_pixel_and_averaging_blocks(height, width, size):
    """Repeat every pixel `size` times: the new pixels are then blocks of whole old ones."""
    images = random_images(2, 3, height, width)
    fine = images.astype(float).repeat(size, axis=-1).repeat(size, axis=-2)
    exact = fine.reshape(2, 3, size, height, size, width).mean((3, 5))
    out = area_resize(images, size)
    assert out.dtype == np.uint8
    assert np.abs(out - exact).max() <= 0.5 + 1e-12
    assert (area_resize(images[:1], size) == out[:1]).all()


def test_strips_do_not_change_the_result(monkeypatch):
    images = random_images(7, 3, 10, 6)
    whole = area_resize(images, 4)
    monkeypatch.setattr(difficulty, "_BLOCK", 20)
    assert (area_resize(images, 4) == whole).all()
    assert area_resize(images, 10).shape == (7, 3, 10, 10)


@pytest.mark.parametrize(("low", "high", "noted"), [(0, 1, False), (0, 2, True), (-1, 1, True)])
def test_pixels_outside_the_unit_range_are_measured_relative_to_theirs(low, high, noted):
    values = np.array([low, high], dtype=np.float32)
    unit, notes = difficulty._unit(values, images=True)
    assert (unit, bool(notes)) == (1 / (high - low), noted)
