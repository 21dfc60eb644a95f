"""The same drawn samples give the value of spectral-metric."""

import numpy as np
import pytest

from tstar.difficulty import csg

pytest.importorskip("spectral_metric")


@pytest.mark.parametrize("neighbors", [1, 3, 5])
@pytest.mark.parametrize("dimensions", [2, 3, 8])
def test_embeddings_of_few_dimensions(neighbors, dimensions, helpers):
    x, y = helpers.blobs(600, 5, dimensions, 0.7, seed=dimensions)
    result = csg(x, y, samples=60, neighbors=neighbors, seed=4)
    value, S, W, spectrum = helpers.oracle(x, y, result.indices, neighbors)
    assert result.value == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(result.expectation, S, atol=1e-9)
    np.testing.assert_allclose(result.similarity, W, atol=1e-9)
    np.testing.assert_allclose(result.spectrum, spectrum, atol=1e-9)
    assert result.regime == "volumes" or dimensions == 8 or result.floored < 0.6
    assert 0.2 < result.value < 3.9  # neither end of the scale, where agreement would mean little


@pytest.mark.parametrize("as_bytes", [True, False])
def test_pixels(as_bytes, helpers):
    images, y = helpers.pictures(500, 4, 16)
    flat = images.reshape(len(images), -1)
    result = csg(images if as_bytes else flat / 255, y, samples=50, size=16)
    value, S, *_ = helpers.oracle(flat / 255, y, result.indices, 5)
    assert result.regime == "floored"
    assert result.value == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(result.expectation, S, atol=1e-12)
    assert 0.2 < result.value < 2.9


def test_unequal_classes_and_pixels_of_few_dimensions(helpers):
    rng = np.random.default_rng(0)
    y = rng.choice(4, 300, p=[0.6, 0.25, 0.1, 0.05])
    # distinct values: ties are broken otherwise by the reference, which sorts without an order
    x = rng.permutation(300 * 5).reshape(300, 5) / 1500 + 0.15 * y[:, None]
    result = csg(x, y, samples=40)
    value, S, *_ = helpers.oracle(x, y, result.indices, 5)
    assert result.samples == tuple(np.minimum(np.bincount(y), 40))
    assert result.value == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(result.expectation, S, atol=1e-9)
