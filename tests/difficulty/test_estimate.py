"""Properties of the whole: seeds, names, order, the ends of the scale."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest
import torch

import tstar
from tstar.difficulty import Csg, csg
from tstar.errors import TstarError


def test_public_names():
    assert tstar.csg is csg
    assert tstar.Csg is Csg


def test_renaming_classes_changes_no_bit(helpers):
    x, y = helpers.blobs(300, 5, 4, 0.8)
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


def test_names_are_looked_up_below_the_root(helpers, tmp_path):
    x, y = helpers.blobs(60, 3, 4, 0.8)
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y)
    assert csg("mine", root=tmp_path).value == csg(x, y).value
    with pytest.raises(TstarError, match="set root=… or TSTAR_DATA"):
        csg("mine", root=tmp_path / "elsewhere")


def test_same_seed_same_bits_other_seed_other_draw(helpers):
    x, y = helpers.blobs(400, 4, 6, 1.0)
    first, again, other = (csg(x, y, samples=25, seed=s) for s in (3, 3, 4))
    assert first == again
    assert first.value == again.value
    assert first.indices[0].tolist() == again.indices[0].tolist()
    assert other.indices[0].tolist() != first.indices[0].tolist()


def test_threads_change_nothing_but_the_last_bits_of_the_eigenvalues():
    code = (
        "import numpy as np, tstar;"
        "r = np.random.default_rng(0); y = np.arange(300) % 10;"
        "x = r.integers(0, 90, (300, 200)).astype(np.uint8) + 4 * y[:, None].astype(np.uint8);"
        "print(tstar.csg(x, y, samples=20).value)"
    )
    outputs = []
    for threads in "1", "2":
        env = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=env, capture_output=True, encoding="utf-8", check=True)
        outputs.append(float(done.stdout))
    assert outputs[0] == pytest.approx(outputs[1], rel=1e-12)


def test_order_of_the_data_does_not_matter_when_all_samples_are_used(helpers):
    x, y = helpers.blobs(200, 4, 5, 0.9)
    order = np.random.default_rng(5).permutation(len(x))
    first, other = csg(x, y, samples=1000), csg(x[order], y[order], samples=1000)
    assert other.value == pytest.approx(first.value, abs=1e-12)
    np.testing.assert_allclose(other.similarity, first.similarity, atol=1e-12)


def test_separated_classes_give_exactly_zero():
    y = np.repeat(np.arange(6), 20)
    x = 1000.0 * np.eye(6)[y] + np.random.default_rng(0).normal(size=(120, 6))
    result = csg(x, y)
    assert result.value == 0.0
    assert (result.similarity == np.eye(6)).all()


@pytest.mark.parametrize("K", [2, 3, 5])
def test_identical_classes_give_K_minus_one(K):
    """Pairs of twins, far from all others: each class has as many twins in every class."""
    pairs = [(i, j) for i in range(K) for j in range(i + 1, K) for _ in range(2)]
    pairs += [(i, i) for i in range(K)]
    y = np.array(pairs).ravel()
    x = np.repeat(np.arange(len(pairs)) * 100.0, 2) + np.tile([0.0, 1.0], len(pairs))
    result = csg(x[:, None], y, neighbors=1)
    np.testing.assert_allclose(result.expectation, 1 / K, atol=1e-12)
    assert result.value == pytest.approx(K - 1, abs=1e-11)


def test_a_duplicate_is_a_neighbor_and_the_sample_itself_is_not():
    x = np.array([[0.0], [0.0], [5.0], [5.0]])  # twins of different classes
    result = csg(x, ["a", "b", "a", "b"], neighbors=1)
    assert (result.expectation == [[0, 1], [1, 0]]).all()


def test_harder_data_have_a_larger_csg(helpers):
    values = [float(csg(*helpers.blobs(500, 6, 4, spread))) for spread in (0.2, 0.6, 1.2, 5.0)]
    assert values == sorted(values)
    assert values[-1] > values[0] + 1


def test_scale_of_features_changes_volumes_only_through_the_floor(helpers):
    x, y = helpers.blobs(300, 3, 4, 0.8)
    small, large = csg(x * 1e-3, y), csg(x * 1e30, y)
    assert small.regime == "floored"
    assert large.regime == "volumes"
    assert large.value == pytest.approx(float(csg(x * 1e60, y)), abs=1e-9)


def test_cosine_is_blind_to_length(helpers):
    x, y = helpers.blobs(300, 4, 10, 0.5)
    stretched = x * np.random.default_rng(0).uniform(0.5, 2, size=(300, 1))
    assert (csg(x, y, distance="cosine").expectation > 0).any()
    from sklearn.metrics import pairwise_distances

    from tstar.difficulty.estimate import _unit_length
    from tstar.difficulty.neighbors import nearest

    order = np.argsort(pairwise_distances(stretched, metric="cosine"), axis=1)
    expected = np.array([row[row != i][:5] for i, row in enumerate(order)])
    np.testing.assert_array_equal(nearest(_unit_length(stretched), np.arange(300), 5), expected)


def test_no_global_generator_is_touched(helpers):
    x, y = helpers.blobs(100, 3, 3, 1.0)
    states = [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]  # noqa: NPY002
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y)), batch_size=7, shuffle=True
    )
    values = {csg(x, y).value, csg(x, y).value}
    assert len(values) == 1
    assert csg(loader).value == csg(loader).value
    assert states == [
        random.getstate(),
        np.random.get_state()[1].tolist(),  # noqa: NPY002
        torch.get_rng_state().tolist(),
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"samples": 0},
        {"neighbors": 0},
        {"neighbors": 2.5},
        {"seed": -1},
        {"repeats": 0},
        {"size": 0},
        {"distance": "manhatan"},
        {"embed": 3},
    ],
)
def test_bad_options(options, helpers):
    with pytest.raises(TstarError, match=next(iter(options))):
        csg(*helpers.blobs(60, 3, 2, 1.0), **options)


def test_numbers_that_are_far_too_large(helpers):
    x, y = helpers.blobs(60, 3, 2, 0.8)
    assert float(csg(x, y, samples=2**64)) == float(csg(x, y, samples=60))
    with pytest.raises(TstarError, match="repeats must be a whole number from 1 to 10,000"):
        csg(x, y, repeats=2**63)
